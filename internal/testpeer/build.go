package testpeer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
)

var built sync.Map // binary -> func() (path string, err error)

// A binary is a command and how it is built.
type binary struct {
	name string
	race bool
}

// Build builds one of our commands by the name it is installed under, such as
// "hadrain-render", and returns its path. It is built with the race detector
// if the test is, and at most once for each test binary.
func Build(t testing.TB, name string) string {
	t.Helper()
	return buildOnce(t, binary{name, raceEnabled()})
}

// BuildPlain is [Build] without the race detector, which slows a program down
// tenfold, and static, as it is shipped: for tests of load and memory.
func BuildPlain(t testing.TB, name string) string {
	t.Helper()
	return buildOnce(t, binary{name, false})
}

func buildOnce(t testing.TB, b binary) string {
	t.Helper()
	root := Root(t)
	once, _ := built.LoadOrStore(b, sync.OnceValues(func() (string, error) {
		return build(root, b)
	}))
	path, err := once.(func() (string, error))()
	if err != nil {
		t.Fatalf("building %s: %v", b.name, err)
	}
	return path
}

// build puts the binary into a directory that stays, not into one of the
// test's: an up-to-date binary is not linked again, for which the Go command
// has no cache, and many test binaries want the same few commands.
func build(root string, b binary) (string, error) {
	dir := filepath.Join(root, ".ci", "cache", "test-bin")
	if b.race {
		dir += "-race"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "."+b.name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	source := "./cmd/" + strings.TrimPrefix(b.name, "hadrain-") // cmd/hadrain for hadrain itself
	path := filepath.Join(dir, b.name)
	// Flags like those of the test itself, so that both share what is compiled.
	args := []string{"build", "-buildvcs=false", "-o", path}
	if b.race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, source)...)
	cmd.Dir = root
	if !b.race {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return path, nil
}

// lock keeps test binaries that run at the same time from writing one file.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

// raceEnabled reports whether this test binary has the race detector.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}
