package tests_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// A Consul in development mode forgets everything when it restarts, and its
// index starts over.
func TestRenderKeepsTheFileWhenConsulLosesItsData(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	for range 50 {
		s.put("web/a", "ready")
		s.put("web/a", "drain") // moves the index
	}
	s.mark()
	p := s.run(nil)
	s.wantRows(p, "web/a drain")
	s.consul.Stop(t)
	p.WaitOutput(t, "reason=transport")
	s.consul.Start(t)
	p.WaitOutput(t, "reason=no_sentinel")
	s.wantRows(p, "web/a drain")
	s.put(".hadrain", "v1 id=00000000-0000-4000-8000-000000000002")
	p.WaitOutput(t, "reason=wrong_sentinel")
	s.wantRows(p, "web/a drain")
	s.put("web/b", "maint")
	s.mark()
	s.wantRows(p, "web/b maint")
}

// An agent that hangs takes connections and answers nothing.
func TestRenderRecoversFromAHungAgent(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	s.put("web/a", "drain")
	p := s.run(nil)
	s.wantRows(p, "web/a drain")
	s.consul.Pause(t)
	t.Setenv("HADRAIN_TEST_TIMEOUT", "40s") // a held read may take 20.6 s
	p.WaitOutput(t, "reason=timeout")
	s.consul.Resume()
	s.put("web/a", "ready")
	s.wantRows(p, "web/a ready")
}

// A leader that replays its log answers other reads than consistent ones with
// part of the keys. The sentinel comes first, so that a part has it too; several
// renders are there, since the time of the replay is short.
func TestRenderNeverPublishesAPart(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{Persistent: true})
	const keys = 20_000
	s.mark()
	s.fill(keys)
	s.consul.Kill(t)
	var paths []string
	var renders []*testpeer.Process
	for i := range 8 {
		paths = append(paths, filepath.Join(s.dir, fmt.Sprintf("state-%d", i)))
		renders = append(renders, s.run(nil, "--start-timeout", "1m", "--state", paths[i]))
	}
	s.consul.Start(t)
	for i, path := range paths {
		testpeer.WaitFor(t, "a state", func() (bool, string) {
			f, _, err := statefile.Load(path)
			if err != nil {
				return false, err.Error() + renders[i].Output()
			}
			return len(f.Rows) == keys, fmt.Sprintf("%d keys", len(f.Rows))
		})
		if first := "msg=\"in sync\" keys=20000 "; !strings.Contains(renders[i].Output(), first) {
			t.Errorf("a part was published:\n%s", renders[i].Output())
		}
	}
}

func TestRenderFollowsASnapshotRestore(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	s.put("web/a", "drain")
	p := s.run(nil)
	s.wantRows(p, "web/a drain")
	snapshot, _, err := s.consul.Client(t).Snapshot().Save(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = snapshot.Close() }()
	s.put("web/a", "maint")
	s.put("web/b", "maint")
	s.wantRows(p, "web/a maint", "web/b maint")
	if err := s.consul.Client(t).Snapshot().Restore(nil, snapshot); err != nil {
		t.Fatal(err)
	}
	s.wantRows(p, "web/a drain")
}
