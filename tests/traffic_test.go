package tests_test

import (
	"io"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// traffic sends a machine's HAProxy a hundred requests a second, as soon as it
// looks alive to the load balancer in front of it, and counts who answers.
type traffic struct {
	client *http.Client
	end    chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	answers map[string]int // by the name of the server
}

func startTraffic(m *testpeer.Machine) *traffic {
	r := &traffic{client: m.HTTP(), end: make(chan struct{}), done: make(chan struct{}), answers: map[string]int{}}
	go r.run()
	return r
}

func (r *traffic) run() {
	defer close(r.done)
	every := func(period time.Duration, act func() (done bool)) {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-r.end:
				return
			case <-tick.C:
				if act() {
					return
				}
			}
		}
	}
	every(200*time.Millisecond, func() bool {
		_, err := r.get("http://127.0.0.1:8081/")
		return err == nil
	})
	every(10*time.Millisecond, func() bool {
		if server, err := r.get("http://127.0.0.1:8080/"); err == nil {
			r.mu.Lock()
			r.answers[server]++
			r.mu.Unlock()
		}
		return false
	})
}

func (r *traffic) get(url string) (string, error) {
	resp, err := r.client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// counts returns how many requests each server has answered.
func (r *traffic) counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.answers)
}

// stop waits until web-01 and web-02 have answered n times each, and returns
// the counts.
func (r *traffic) stop(t *testing.T, n int) map[string]int {
	t.Helper()
	testpeer.WaitFor(t, "servers to answer", func() (bool, string) {
		got := r.counts()
		return got["web-01"] >= n && got["web-02"] >= n, ""
	})
	r.cancel()
	return r.counts()
}

func (r *traffic) cancel() {
	select {
	case <-r.done:
	default:
		close(r.end)
		<-r.done
	}
}
