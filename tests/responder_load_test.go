package tests_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/testpeer"
)

// A service is a responder whose sockets this test holds, as systemd would.
type service struct {
	t           *testing.T
	state       string
	agent, http *net.TCPListener
	process     *testpeer.Process
}

func newService(t *testing.T, rows []desired.Row, flags ...string) *service {
	t.Helper()
	s := &service{t: t, state: filepath.Join(t.TempDir(), "state"), agent: listen(t), http: listen(t)}
	s.write(1, rows)
	s.start(flags...)
	return s
}

// start returns when the process has said that it answers.
func (s *service) start(flags ...string) {
	s.t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{
		"-c", `LISTEN_PID=$$ exec "$0" "$@"`,
		testpeer.BuildPlain(s.t, "hadrain-responder"), "--state", s.state,
	}, flags...)...)
	cmd.Env = append(os.Environ(), "LISTEN_FDS=2", "LISTEN_FDNAMES=agent:http")
	for _, l := range []*net.TCPListener{s.agent, s.http} {
		f, err := l.File()
		if err != nil {
			s.t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	s.process = testpeer.Start(s.t, cmd)
	s.process.WaitOutput(s.t, "answering agent checks")
}

// write replaces the state file.
func (s *service) write(index uint64, rows []desired.Row) {
	s.t.Helper()
	f := &statefile.File{Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: index, Host: "lb-1", Rendered: time.Now().UTC()}, Rows: rows}
	if err := statefile.Write(s.state, statefiletest.Format(f)); err != nil {
		s.t.Error(err)
	}
}

// fleet returns rows in every state, and what HAProxy asks for them: each row's
// own key and that of a group, which answers for every seventh.
func fleet(servers int) (rows []desired.Row, questions []exchange) {
	states := []desired.State{desired.Ready, desired.Drain, desired.Maint, desired.Hold}
	for _, percent := range []int{0, 1, 50, 99, 100} {
		if w, err := desired.Weight(percent); err == nil {
			states = append(states, w)
		}
	}
	rows = append(rows, desired.Row{Key: "group", State: desired.Drain})
	for i := range servers {
		key, state := fmt.Sprintf("web/server-%05d", i), states[i%len(states)]
		if i%7 == 0 {
			state = desired.Drain // from its group
		} else {
			rows = append(rows, desired.Row{Key: key, State: state})
		}
		questions = append(questions, exchange{key + " group\n", state.Reply(0)})
	}
	return rows, questions
}

// A moment is a stretch of time in which the responder died.
type moment struct{ from, to time.Time }

// A million checks, while the responder is killed ten times and restarted ten
// times and its file replaced all the time: no reply that differs from the
// state, and only checks that were in flight at a kill go without one.
func TestMillionChecks(t *testing.T) {
	const goroutines, ends = 16, 20
	rows, questions := fleet(1000)
	s := newService(t, rows)
	a := newAskers(t, s.agent.Addr(), 1_000_000, questions)
	due := make(chan struct{}, ends+1)
	done := make(chan struct{})
	start := time.Now()
	var asking, writing sync.WaitGroup
	asking.Go(func() { a.run(goroutines, a.total/(ends+1), func() { due <- struct{}{} }) })
	writing.Go(func() { s.keepWriting(rows, done) })

	var kills []moment
	for n := range ends {
		<-due
		if n%2 == 0 {
			from := time.Now()
			s.process.Kill(t)
			kills = append(kills, moment{from, time.Now()})
		} else if code := s.process.Stop(t); code != 0 {
			t.Errorf("exit status %d after SIGTERM, want 0", code)
		}
		s.start()
	}
	asking.Wait()
	close(done)
	writing.Wait()
	t.Logf("%d checks in %v; %d were cut by %d kills", a.total, time.Since(start).Round(time.Millisecond), len(a.failures), len(kills))
	judge(t, a.failures, kills, goroutines)
}

// keepWriting replaces the state file all the time with one that says the same.
func (s *service) keepWriting(rows []desired.Row, done <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for index := uint64(2); ; index++ {
		select {
		case <-done:
			return
		case <-tick.C:
			s.write(index, rows)
		}
	}
}

// judge allows a failure only to a check that was cut by a kill, at most one for
// each goroutine that asked.
func judge(t *testing.T, failures []failure, kills []moment, most int) {
	t.Helper()
	cuts := make([]int, len(kills))
	for _, f := range failures {
		allowed := false
		for i, k := range kills {
			if errors.Is(f.err, errCut) && f.from.Before(k.to) && k.from.Before(f.to) {
				cuts[i]++
				allowed = true
				break
			}
		}
		if !allowed {
			t.Errorf("at no kill, a check of %v: %v", f.to.Sub(f.from), f.err)
		}
	}
	for i, n := range cuts {
		if n > most {
			t.Errorf("kill %d cut %d checks, but only %d can be in flight", i+1, n, most)
		}
	}
}
