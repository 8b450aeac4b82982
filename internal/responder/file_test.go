package responder_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/testpeer"
)

// Whatever happens to the file, no check is answered from anything but a good
// one, and none goes unanswered.
func TestBadFileNeverReplacesGood(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	good := statefiletest.Format(state(7, "canary", "drain"))
	put(t, path, good)
	d := start(t, path, nil)
	d.waitAnswer(t, "canary", "drain 100%")
	stop := d.keepAsking(t, "canary", "drain 100%")
	defer stop()

	put(t, path, good[:len(good)-20])
	d.waitProblem(t, "reading state")
	put(t, path, []byte(strings.Replace(string(good), "drain", "ready", 1)))
	d.waitLog(t, "state file refused", 2)
	put(t, path, good)
	d.waitProblem(t, "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	d.waitProblem(t, "no such file")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	d.waitProblem(t, "not a regular file")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	d.waitProblem(t, "no such file")
	stop()

	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, path, statefiletest.Format(state(8, "canary", "maint")))
	d.waitAnswer(t, "canary", "maint 100%")
	if got := d.status(t).State; got.Error != "" || got.Index != 8 || !got.Loaded {
		t.Errorf("state in the end: %+v", got)
	}
	if code, _ := d.get(t, "/readyz"); code != 200 {
		t.Errorf("/readyz = %d, want 200", code)
	}
}

// put replaces the file at once, whatever it is.
func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func (d *daemon) waitProblem(t *testing.T, want string) {
	t.Helper()
	testpeer.WaitFor(t, "status.json to say "+want, func() (bool, string) {
		got := d.status(t).State.Error
		return strings.Contains(got, want) && (got == "") == (want == ""), got
	})
}

func (d *daemon) waitLog(t *testing.T, text string, times int) {
	t.Helper()
	testpeer.WaitFor(t, "log: "+text, func() (bool, string) { return d.log.Count(text) == times, d.log.String() })
}

// keepAsking asks until it is stopped; each answer must be want.
func (d *daemon) keepAsking(t *testing.T, question, want string) (stop func()) {
	t.Helper()
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-done:
				return
			default:
			}
			if got, err := ask(d.agent, question); err != nil || got != want {
				t.Errorf("%s: %q, %v, want %q", question, got, err, want)
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(done); <-gone })
}

// Kubernetes flips a link of a directory instead of renaming the file.
func TestLinksAreFollowed(t *testing.T) {
	dir := t.TempDir()
	for name, word := range map[string]string{"v1": "drain", "v2": "maint"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "state"), state(1, "canary", word))
	}
	flip := func(to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, "..new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	flip("v1")
	path := filepath.Join(dir, "state")
	if err := os.Symlink("..data/state", path); err != nil {
		t.Fatal(err)
	}
	d := start(t, path, nil)
	d.waitAnswer(t, "canary", "drain 100%")
	flip("v2")
	d.waitAnswer(t, "canary", "maint 100%")
}

func TestTouchMovesOnlyTheAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	write(t, path, state(1, "canary", "drain"))
	d := start(t, path, nil)
	d.waitAnswer(t, "canary", "drain 100%")
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	testpeer.WaitFor(t, "the age to move", func() (bool, string) {
		s := d.status(t).State
		return s.Read.Equal(at) && s.Age > 3599, s.Read.String()
	})
	if n := d.log.Count("state loaded"); n != 1 {
		t.Errorf("loaded %d times, want once", n)
	}
	d.hup <- syscall.SIGHUP
	d.waitMetric(t, "hadrain_responder_state_loads_total 2")
}

func (d *daemon) waitMetric(t *testing.T, want string) {
	t.Helper()
	testpeer.WaitFor(t, want, func() (bool, string) {
		_, body := d.get(t, "/metrics")
		return strings.Contains(body, "\n"+want+"\n"), body
	})
}
