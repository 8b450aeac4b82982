package testpeer

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Timeout returns how long a test waits for one event: $HADRAIN_TEST_TIMEOUT
// in Go's notation, 20 s by default. It bounds a hang, it is no expectation.
func Timeout(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("HADRAIN_TEST_TIMEOUT")
	if text == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("HADRAIN_TEST_TIMEOUT=%q: want a positive duration such as 30s", text)
	}
	return d
}

// WaitFor asks cond every 20 ms until it says ok, and fails the test with the
// last detail when [Timeout] has passed. It is the one place where the tests
// poll; where a channel or a blocking call can tell, wait for that instead.
func WaitFor(t testing.TB, what string, cond func() (ok bool, detail string)) {
	t.Helper()
	if err := poll(t, cond); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func poll(t testing.TB, cond func() (ok bool, detail string)) error {
	t.Helper()
	limit := Timeout(t)
	deadline := time.NewTimer(limit) // not t.Context: cleanups wait too
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, detail := cond()
		if ok {
			return nil
		}
		select {
		case <-deadline.C:
			return fmt.Errorf("gave up after %v; last seen: %s", limit, detail)
		case <-tick.C:
		}
	}
}
