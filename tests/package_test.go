package tests_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// The versions that are packaged. The commits of neither are of this world.
const (
	oldVersion = "v0.0.1"
	newVersion = "v0.0.2"
)

// TestPackages builds what is shipped, twice, and holds it against what Debian,
// dpkg, rpm and a booted systemd say.
func TestPackages(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"make", "dpkg-deb", "lintian", "rpm"} {
		testpeer.Need(t, tool)
	}
	if testing.Short() {
		t.Skip("builds for two architectures")
	}
	source := copySource(t, testpeer.Root(t))
	dist := build(t, source, oldVersion, "release")
	t.Run("reproducible", func(t *testing.T) { testReproducible(t, source, dist) })
	t.Run("contents", func(t *testing.T) { testContents(t, source, dist) })
	t.Run("lintian", func(t *testing.T) { testLintian(t, dist) })
	next := build(t, source, newVersion, "packages", "amd64")
	t.Run("install", func(t *testing.T) { testInstall(t, dist, next) })
}

// copySource copies the source to a new directory, so that nobody's work in the
// checkout changes it between two builds.
func copySource(t *testing.T, root string) string {
	t.Helper()
	to := filepath.Join(testpeer.Dir(t), "source")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "dist", ".ci/bin", ".ci/cache"}, name):
			return fs.SkipDir
		case d.IsDir():
			return os.Mkdir(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, info.Mode().Perm())
	})
	if err != nil {
		t.Fatalf("copying the source: %v", err)
	}
	return to
}

// build runs packaging/make in the directory source, under a shell that sets
// the umask if one is given, and returns where it put everything.
func build(t *testing.T, source, version string, args ...string) string {
	t.Helper()
	return buildAs(t, source, version, "umask 022", args...)
}

func buildAs(t *testing.T, source, version, prepare string, args ...string) string {
	t.Helper()
	dist := testpeer.Dir(t)
	cmd := exec.Command("sh", append([]string{"-ec", prepare + `; exec packaging/make "$@"`, "sh"}, args...)...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "DIST="+dist, "VERSION="+version, "SOURCE_DATE_EPOCH=1789000000")
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("packaging/make %v: %v\n%s", args, err, out)
	}
	t.Logf("packaging/make %v took %v", args, time.Since(start).Round(time.Second))
	return dist
}

// testReproducible builds once more elsewhere: under another umask, another
// time zone and another locale, with files of another age.
func testReproducible(t *testing.T, source, dist string) {
	again := copySource(t, source)
	err := filepath.WalkDir(again, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	second := buildAs(t, again, oldVersion, "umask 077; chmod -R go= .; export TZ=Asia/Tokyo LC_ALL=C", "release")
	names, err := filepath.Glob(filepath.Join(dist, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 9 { // for each of two: .deb, .rpm, .tar.gz, bill; and the sums
		t.Errorf("a release has %d files, want 9: %q", len(names), names)
	}
	for _, name := range names {
		one, two := readFile(t, name), readFile(t, filepath.Join(second, filepath.Base(name)))
		if one != two {
			t.Errorf("%s is %d bytes in one build and %d other ones in the next", filepath.Base(name), len(one), len(two))
		}
	}
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = dist
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 8 {
		t.Errorf("the sums of the release: %v\n%s", err, out)
	}
}

// testContents holds the packages against each other, the units and their own
// scripts.
func testContents(t *testing.T, source, dist string) {
	deb := paths(t, "dpkg-deb", "-c", filepath.Join(dist, "hadrain_0.0.1-1_amd64.deb"))
	if arm := paths(t, "dpkg-deb", "-c", filepath.Join(dist, "hadrain_0.0.1-1_arm64.deb")); !slices.Equal(arm, deb) {
		t.Errorf("the packages of the two architectures differ:\n%q\n%q", deb, arm)
	}
	for _, path := range deb {
		mode, name, _ := strings.Cut(path, " ")
		want := "-rw-r--r--"
		switch {
		case strings.HasSuffix(name, "/"):
			want = "drwxr-xr-x"
		case strings.HasPrefix(name, "/usr/bin/"):
			want = "-rwxr-xr-x"
		}
		if mode != want+"root/root" {
			t.Errorf("%s has %s, want %s of root", name, mode, want)
		}
	}
	for _, name := range append(installed(t, source),
		"/usr/bin/hadrain", "/usr/bin/hadrain-render", "/usr/bin/hadrain-responder",
		"/usr/share/man/man1/hadrain.1.gz", "/usr/share/man/man1/hadrain-drain.1.gz",
		"/usr/share/man/man8/hadrain-render.8.gz", "/usr/share/man/man8/hadrain-responder.8.gz",
		"/usr/share/doc/hadrain/NOTICE.gz", "/usr/share/doc/hadrain/copyright", "/usr/share/doc/hadrain/changelog.Debian.gz",
		"/usr/share/bash-completion/completions/hadrain", "/usr/share/fish/vendor_completions.d/hadrain.fish",
		"/usr/share/zsh/vendor-completions/_hadrain",
	) {
		if !slices.ContainsFunc(deb, func(path string) bool { return strings.HasSuffix(path, " "+name) }) {
			t.Errorf("the package lacks %s", name)
		}
	}
	testScripts(t, source)
}

// installed returns where the units and their settings belong.
func installed(t *testing.T, source string) []string {
	t.Helper()
	names := []string{"/usr/lib/sysusers.d/hadrain.conf", "/usr/lib/tmpfiles.d/hadrain.conf", "/etc/default/hadrain"}
	for _, unit := range units(t, source) {
		names = append(names, "/usr/lib/systemd/system/"+unit)
	}
	return names
}

// units returns the names of all units.
func units(t *testing.T, source string) []string {
	t.Helper()
	var names []string
	for _, kind := range []string{"service", "socket"} {
		found, err := filepath.Glob(filepath.Join(source, "units", "*."+kind))
		if err != nil || len(found) == 0 {
			t.Fatalf("no units: %v", err)
		}
		for _, path := range found {
			names = append(names, filepath.Base(path))
		}
	}
	slices.Sort(names)
	return names
}

// testScripts wants every script to know all units that can be enabled.
func testScripts(t *testing.T, source string) {
	var want []string
	for _, unit := range units(t, source) {
		text := readFile(t, filepath.Join(source, "units", unit))
		if strings.Contains(text, "[Install]") && !strings.Contains(unit, "@") {
			want = append(want, unit)
		}
	}
	name := regexp.MustCompile(`hadrain-[a-z-]+\.(service|socket)`)
	for _, script := range []string{"deb/postinst", "deb/prerm", "deb/postrm", "rpm/post", "rpm/preun"} {
		got := name.FindAllString(readFile(t, filepath.Join(source, "packaging", script)), -1)
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("packaging/%s knows %q, want %q", script, got, want)
		}
	}
}

// paths runs a program that lists a package and returns mode, owner and path of
// each file, sorted.
func paths(t *testing.T, name string, args ...string) []string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line) // mode owner size day time ./path
		list = append(list, fmt.Sprintf("%s%s %s", words[0], words[1], strings.TrimPrefix(words[5], ".")))
	}
	slices.Sort(list)
	return list
}

func testLintian(t *testing.T, dist string) {
	debs, err := filepath.Glob(filepath.Join(dist, "*_amd64.deb"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("lintian", append([]string{"--fail-on=error,warning", "--allow-root"}, debs...)...)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %v\n%s", cmd, err, out)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
