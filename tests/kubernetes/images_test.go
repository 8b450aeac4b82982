package kubernetes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// images makes the images that the pods need, in dir, and returns their
// archives: ours as make image makes it, and what Debian has of the others.
func images(t *testing.T, dir string) []string {
	t.Helper()
	archives := []string{hadrainImage(t, filepath.Join(dir, "dist"))}
	haproxy := append(program(t, testpeer.Need(t, "haproxy"), "/usr/sbin/haproxy"),
		append(program(t, "/bin/dash", "/bin/sh"), program(t, "/bin/sleep", "/bin/sleep")...)...)
	archives = append(archives,
		pack(t, dir, "localhost/haproxy:test", haproxy, "-stop-signal", "SIGUSR1", "-env", "PATH=/usr/sbin:/bin", "-user", "99:99"),
		pack(t, dir, "localhost/pause:test", program(t, "/bin/sleep", "/pause"), "-entrypoint", "/pause", "-entrypoint", "infinity"))
	return archives
}

// hadrainImage runs make image for this architecture and returns the archive.
func hadrainImage(t *testing.T, dist string) string {
	t.Helper()
	arch := strings.TrimSpace(output(t, exec.Command("go", "env", "GOARCH")))
	cmd := exec.Command("packaging/make", "image", arch)
	cmd.Env = append(os.Environ(), "DIST="+dist, "IMAGE=localhost/hadrain:test", "VERSION=test", "SOURCE_DATE_EPOCH=1700000000")
	output(t, cmd)
	found, err := filepath.Glob(filepath.Join(dist, "*-image_*.tar"))
	if err != nil || len(found) != 1 {
		t.Fatalf("make image left %v, %v", found, err)
	}
	return found[0]
}

// TestImagesAreReproducible: the same sources give the same bytes, for both
// architectures, wherever they lie.
func TestImagesAreReproducible(t *testing.T) {
	here, there := filepath.Join(testpeer.Dir(t), "here"), filepath.Join(testpeer.Dir(t), "some/where/else")
	shell(t, "mkdir -p "+here+" "+there+"; tar -C "+testpeer.Root(t)+" -c --exclude ./.git --exclude ./.ci/bin --exclude ./.ci/cache --exclude ./bin --exclude ./dist . | tar -x -C "+here+
		"; cp -r "+here+"/. "+there)
	read := func(root string) map[string]string {
		cmd := exec.Command("packaging/make", "image")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "VERSION=v1.2.3", "SOURCE_DATE_EPOCH=1700000000")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		files := map[string]string{}
		for _, path := range glob(t, root+"/dist/*") {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(path)] = string(data)
		}
		return files
	}
	first, second := read(here), read(there)
	for name, data := range first {
		if second[name] != data {
			t.Errorf("%s differs between two builds", name)
		}
	}
	for _, name := range []string{"hadrain-image_1.2.3_linux_amd64.tar", "hadrain-image_1.2.3_linux_arm64.tar", "hadrain-image_1.2.3_linux_arm64.cdx.json"} {
		if first[name] == "" {
			t.Errorf("no %s", name)
		}
	}
}

func pack(t *testing.T, dir, name string, files []string, flags ...string) string {
	t.Helper()
	out := filepath.Join(dir, strings.NewReplacer("/", "-", ":", "-").Replace(name)+".tar")
	args := append([]string{"run", "./packaging/image", "-name", name, "-o", out}, flags...)
	output(t, exec.Command("go", append(args, files...)...))
	return out
}

var libraryPath = regexp.MustCompile(`/\S+\.so\S*`)

// program returns the arguments that put a program of this machine into an
// image, with its libraries.
func program(t *testing.T, from, to string) []string {
	t.Helper()
	args := []string{from + ":" + to + ":0755"}
	for _, library := range libraryPath.FindAllString(output(t, exec.Command("ldd", from)), -1) {
		args = append(args, library+":"+library+":0755")
	}
	return args
}

// output runs a command at the root of the repository.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	cmd.Dir = testpeer.Root(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.String())
	}
	return string(out)
}
