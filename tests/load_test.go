package tests_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// A load asks a machine's responder 200 times a second, each time on a
// connection of its own as HAProxy does.
type load struct {
	t              *testing.T
	machine        *testpeer.Machine
	question, want string
	mayClose       int64 // connections that may close without an answer
	good, bad      atomic.Int64
	closed         atomic.Int64
	slowest        atomic.Int64 // nanoseconds
	end            chan struct{}
	asking         sync.WaitGroup
}

// startLoad begins to ask question, to which everything but want is an error,
// but for mayClose connections that close without an answer.
func startLoad(t *testing.T, m *testpeer.Machine, question, want string, mayClose int64) *load {
	t.Helper()
	l := &load{t: t, machine: m, question: question, want: want, mayClose: mayClose, end: make(chan struct{})}
	l.asking.Add(1)
	go l.run()
	return l
}

func (l *load) run() {
	defer l.asking.Done()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.end:
			return
		case <-tick.C:
			l.asking.Add(1)
			go l.ask()
		}
	}
}

func (l *load) ask() {
	defer l.asking.Done()
	start := time.Now()
	got, err := l.answer()
	// Closed, not refused: a process that was killed had accepted it.
	if (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) && got == "") && l.closed.Add(1) <= l.mayClose {
		return
	}
	if err != nil || got != l.want {
		if l.bad.Add(1) <= 5 {
			l.t.Errorf("asking %q: %q, %v after %v, want %q", l.question, got, err, time.Since(start), l.want)
		}
		return
	}
	l.good.Add(1)
	for took := int64(time.Since(start)); ; {
		slowest := l.slowest.Load()
		if took <= slowest || l.slowest.CompareAndSwap(slowest, took) {
			return
		}
	}
}

func (l *load) answer() (string, error) {
	conn, err := l.machine.Dial("tcp", "127.0.0.1:9777")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testpeer.Timeout(l.t))); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, l.question+"\n"); err != nil {
		return "", err
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	conn.(*net.TCPConn).SetLinger(0) // as HAProxy closes
	return strings.TrimSuffix(reply, "\n"), err
}

// atLeast waits for n more answers.
func (l *load) atLeast(n int64) {
	l.t.Helper()
	before := l.good.Load()
	testpeer.WaitFor(l.t, "more answers", func() (bool, string) {
		return l.good.Load() >= before+n, ""
	})
}

// stop waits for the last answers and reports.
func (l *load) stop() {
	l.t.Helper()
	close(l.end)
	l.asking.Wait()
	l.t.Logf("%d answers, %d closed, %d errors, the slowest took %v", l.good.Load(), l.closed.Load(), l.bad.Load(), time.Duration(l.slowest.Load()))
	if l.bad.Load() > 0 {
		l.t.Errorf("%d of %d questions went wrong", l.bad.Load(), l.bad.Load()+l.good.Load())
	}
}
