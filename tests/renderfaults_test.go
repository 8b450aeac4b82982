package tests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// mount mounts a file system of its own for the state file.
func (s *stack) mount(options string) {
	s.t.Helper()
	if os.Geteuid() != 0 {
		testpeer.Missing(s.t, "root's rights, to mount file systems")
	}
	if err := syscall.Mount("tmpfs", s.dir, "tmpfs", 0, options); err != nil {
		s.t.Fatalf("mounting a tmpfs on %s: %v", s.dir, err)
	}
	s.t.Cleanup(func() {
		if err := syscall.Unmount(s.dir, syscall.MNT_DETACH); err != nil {
			s.t.Errorf("unmounting %s: %v", s.dir, err)
		}
	})
}

// Whatever the disk does, the old state stays whole; when the disk is well
// again the new one is written without a restart.
func TestRenderSurvivesTheDisk(t *testing.T) {
	for _, tc := range []struct {
		name, options string
		harm, heal    func(t *testing.T, dir string) error
		says          string
	}{
		{
			"full", "size=64k,mode=755",
			func(t *testing.T, dir string) error {
				err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 128<<10), 0o600)
				if err == nil {
					t.Error("the disk is not full")
				}
				return nil
			},
			func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "filler")) },
			"no space left",
		},
		{
			"out of inodes", "nr_inodes=5,mode=755",
			func(_ *testing.T, dir string) error {
				for _, name := range []string{"x", "y", "z"} {
					if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
						return nil // full earlier
					}
				}
				return nil
			},
			func(_ *testing.T, dir string) error {
				for _, name := range []string{"x", "y", "z"} {
					_ = os.Remove(filepath.Join(dir, name)) // not all were made
				}
				return nil
			},
			"no space left",
		},
		{
			"not permitted", "mode=755",
			func(_ *testing.T, dir string) error { return exec.Command("chattr", "+i", dir).Run() },
			func(_ *testing.T, dir string) error { return exec.Command("chattr", "-i", dir).Run() },
			"operation not permitted",
		},
		{
			"read only", "mode=755",
			func(_ *testing.T, dir string) error {
				// Above the one that holds the lock file open, which keeps it writable.
				if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
					return err
				}
				return syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
			},
			func(_ *testing.T, dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) },
			"read-only file system",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newRenderStack(t, testpeer.ConsulConfig{})
			s.mount(tc.options)
			s.mark()
			s.put("web/a", "drain")
			p := s.run(nil)
			s.wantRows(p, "web/a drain")
			if err := tc.harm(t, s.dir); err != nil {
				t.Fatal(err)
			}
			s.put("web/a", "maint")
			p.WaitOutput(t, tc.says)
			s.wantRows(p, "web/a drain")
			if err := tc.heal(t, s.dir); err != nil {
				t.Fatal(err)
			}
			s.wantRows(p, "web/a maint")
			p.WaitOutput(t, "the state file is current again")
			left, err := filepath.Glob(filepath.Join(s.dir, ".state.tmp-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("temporary files %q, %v", left, err)
			}
		})
	}
}

// Whatever somebody does to the file by hand is undone within a second, and said.
func TestRenderUndoesWhatIsDoneByHand(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	s.put("web/a", "drain")
	p := s.run(nil)
	s.wantRows(p, "web/a drain")
	for command, says := range map[string]string{
		`rm "$STATE"`:                                   "removed",
		`mv "$STATE" "$STATE.old"`:                      "removed",
		`sed -i s/drain/ready/ "$STATE"`:                "changed",
		`echo 'web/b  maint' >>"$STATE"`:                "changed",
		`: >"$STATE"`:                                   "changed",
		`echo >"$STATE.x"; ln -f "$STATE"[.]x "$STATE"`: "changed",
	} {
		// On a busy machine one try may be late: the test, or render.
		took := time.Hour
		for n := 0; n < 5 && took > time.Second; n++ {
			took = min(took, s.undone(p, command, says))
		}
		if took > time.Second {
			t.Errorf("%s: it was undone after %v at best", command, took)
		}
	}
}

// undone runs a command that harms $STATE, and returns how long that lasted.
func (s *stack) undone(p *testpeer.Process, command, says string) time.Duration {
	s.t.Helper()
	said := strings.Count(p.Output(), "somebody else: putting it back")
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(os.Environ(), "STATE="+s.statePath())
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	var log string
	testpeer.WaitFor(s.t, "a message about "+command, func() (bool, string) {
		log = p.Output()
		return strings.Count(log, "somebody else: putting it back") > said, log
	})
	s.wantRows(p, "web/a drain")
	if !strings.Contains(log[strings.LastIndex(log, "the state file was"):], "was "+says) {
		s.t.Errorf("%s: want that it was %s:\n%s", command, says, log)
	}
	return time.Since(start)
}

// A cluster without a leader answers consistent reads with an error, after 7 s.
func TestRenderRidesOutALostLeader(t *testing.T) {
	t.Setenv("HADRAIN_TEST_TIMEOUT", "60s")
	servers := testpeer.ConsulCluster(t, 3, testpeer.ConsulConfig{})
	s := &stack{t: t, root: "hadrain", dir: testpeer.Dir(t), consul: servers[0]}
	s.kv = s.consul.Client(t).KV()
	s.mark()
	s.put("web/a", "drain")
	p := s.run(nil)
	s.wantRows(p, "web/a drain")
	servers[1].Kill(t)
	servers[2].Kill(t)
	testpeer.WaitFor(t, "a read to fail", func() (bool, string) {
		out := p.Output()
		return strings.Contains(out, "reason=http_500") || strings.Contains(out, "reason=timeout"), out
	})
	if f, _, err := statefile.Load(s.statePath()); err != nil || len(f.Rows) != 1 {
		t.Fatalf("the state without a leader: %v", err)
	}
	servers[1].Start(t)
	p.WaitOutput(t, "accepted again")
	s.put("web/a", "maint")
	s.wantRows(p, "web/a maint")
}
