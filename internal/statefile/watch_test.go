package statefile_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
)

// follower looks at a file as often as a watch says so.
type follower struct {
	path    string
	notices <-chan struct{}
	reader  *statefile.Reader
}

func follow(t *testing.T, path string) follower {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := follower{path, statefile.Watch(ctx, path), statefile.NewReader(path)}
	t.Cleanup(func() {
		cancel()
		for range f.notices {
		}
	})
	return f
}

// see waits for a notice of the state.
func (f follower) see(t *testing.T, want desired.State) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for {
		select {
		case <-f.notices:
			if got, _, _ := f.reader.Look(); got != nil && got.State(0) == want {
				return
			}
		case <-deadline:
			t.Fatalf("state %v was not seen", want)
		}
	}
}

// after waits for the notice of a second, calls change and returns how long the
// next notice took.
func (f follower) after(change func()) time.Duration {
	for last := time.Now(); time.Since(last) < statefile.PollInterval/2; <-f.notices {
		last = time.Now()
	}
	start := time.Now()
	change()
	<-f.notices
	return time.Since(start)
}

// wantPrompt fails the test if a change is seen only because each second is looked.
func (f follower) wantPrompt(t *testing.T) {
	t.Helper()
	var took time.Duration
	for range 3 { // a busy machine may be late
		if took = f.after(func() { write(t, f.path, desired.Hold) }); took < statefile.PollInterval/2 {
			f.see(t, desired.Hold)
			return
		}
	}
	t.Errorf("the notice of a change took %s", took)
}

func TestWatchSeesReplacements(t *testing.T) {
	t.Parallel()
	f := follow(t, filepath.Join(t.TempDir(), "state"))
	for _, state := range []desired.State{desired.Drain, desired.Maint, desired.Ready} {
		write(t, f.path, state)
		f.see(t, state)
	}
	must(t, os.Remove(f.path))
	write(t, f.path, desired.Drain)
	f.see(t, desired.Drain)
	f.wantPrompt(t)
}

// Whatever is done to the directory, the one that is there then is watched.
func TestWatchOutlivesItsDirectory(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(base, next string) error{
		"removed":       func(base, _ string) error { return os.RemoveAll(base + "/dir") },
		"made anew":     func(base, _ string) error { return remake(base + "/dir") },
		"moved":         func(base, _ string) error { return os.Rename(base+"/dir", base+"/away") },
		"parent moved":  func(base, _ string) error { return os.Rename(base, base+"-away") },
		"parent a link": func(base, next string) error { return os.Symlink(next, base) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, next := filepath.Join(t.TempDir(), "base"), t.TempDir()
			f := follow(t, filepath.Join(base, "dir", "state")) // there is nothing yet
			if name != "parent a link" {
				must(t, os.MkdirAll(filepath.Dir(f.path), 0o755))
				write(t, f.path, desired.Drain)
				f.see(t, desired.Drain)
				f.wantPrompt(t)
				write(t, f.path, desired.Ready)
				f.see(t, desired.Ready) // so that it rests while the directory is replaced
			}
			must(t, change(base, next))
			must(t, os.MkdirAll(filepath.Dir(f.path), 0o755))
			write(t, f.path, desired.Maint)
			f.see(t, desired.Maint)
			f.wantPrompt(t)
		})
	}
}

// remake removes the directory and makes it again, if it can with the same inode.
func remake(dir string) error {
	old, err := os.Stat(dir)
	if err == nil {
		err = os.RemoveAll(dir)
	}
	for n := 0; n < 500 && err == nil; n++ {
		name := fmt.Sprintf("%s-%d", dir, n)
		if err = os.Mkdir(name, 0o755); err != nil {
			break
		}
		if info, err := os.Stat(name); err == nil && os.SameFile(info, old) {
			return os.Rename(name, dir)
		}
	}
	return err
}

// Without inotify each second is looked, and so it is seen if inotify can be had.
func TestWatchWithoutInotify(t *testing.T) {
	t.Parallel()
	const limit, inside = "/proc/sys/user/max_inotify_instances", "HADRAIN_TEST_INOTIFY"
	if os.Getenv(inside) == "" {
		needRoot(t)
		cmd := exec.Command(os.Args[0], "-test.run=^TestWatchWithoutInotify$")
		cmd.Env = append(os.Environ(), inside+"=1")
		ids := []syscall.SysProcIDMap{{Size: 1}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("in a user namespace: %v: %s", err, out)
		}
		return
	}
	must(t, os.WriteFile(limit, []byte("0"), 0)) // of this namespace
	f := follow(t, filepath.Join(t.TempDir(), "state"))
	for _, state := range []desired.State{desired.Drain, desired.Maint} {
		write(t, f.path, state)
		f.see(t, state)
	}
	var longest time.Duration
	for n := 0; n < 3 && longest < statefile.PollInterval/2; n++ {
		longest = max(longest, f.after(func() { write(t, f.path, desired.Drain) }))
	}
	if longest < statefile.PollInterval/2 {
		t.Errorf("there is a limit, and a notice came after %s", longest)
	}
	must(t, os.WriteFile(limit, []byte("100"), 0))
	f.wantPrompt(t)
}

// Whoever changes the file without an end gets no answer to each change.
func TestWatchRests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	notices := statefile.Watch(t.Context(), path)
	<-notices
	start := time.Now()
	for range 5 {
		must(t, os.WriteFile(path, nil, 0o644))
		<-notices
	}
	if took := time.Since(start); took < 300*time.Millisecond { // one may be that of each second
		t.Errorf("5 notices within %s", took)
	}
}

// The notice of each second puts off none of a change.
func TestWatchLooksInPassing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	notices := statefile.Watch(t.Context(), path)
	<-notices
	best := time.Hour
	for range 3 { // a busy machine is late now and then, a rest always
		<-notices // nobody changes anything: a second is over
		start := time.Now()
		must(t, os.Mkdir(path, 0o755)) // one event
		<-notices
		best = min(best, time.Since(start))
		must(t, os.Remove(path))
		<-notices
	}
	if best >= 50*time.Millisecond {
		t.Errorf("the fastest notice of a change took %s", best)
	}
}

// Kubernetes replaces a volume's content by renaming the link ..data.
func TestWatchSeesLinkFlips(t *testing.T) {
	dir := t.TempDir()
	flip := func(version string, state desired.State) {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o755))
		write(t, filepath.Join(dir, version, "state"), state)
		must(t, os.Symlink(version, filepath.Join(dir, "..tmp")))
		must(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	}
	flip("v1", desired.Drain)
	must(t, os.Symlink("..data/state", filepath.Join(dir, "state")))
	f := follow(t, filepath.Join(dir, "state"))
	f.see(t, desired.Drain)
	flip("v2", desired.Maint)
	f.see(t, desired.Maint)
}

// Whoever watches the file is not told of the temporary files that a writer makes,
// also if it has a name that is special elsewhere, or one without a directory.
func TestWatchIgnoresTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{"state", filepath.Join(dir, "a*[b]")} {
		notices := statefile.Watch(t.Context(), path)
		<-notices
		var longest time.Duration
		for n := 0; n < 3 && longest < statefile.PollInterval/2; n++ { // a busy machine takes the notice of a second late
			<-notices // nothing changed: a second is over
			start := time.Now()
			tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*") // as Write does
			must(t, err)
			must(t, tmp.Close())
			<-notices
			longest = max(longest, time.Since(start))
		}
		if longest < statefile.PollInterval/2 {
			t.Errorf("%s: a notice %s after a temporary file", path, longest)
		}
	}
}
