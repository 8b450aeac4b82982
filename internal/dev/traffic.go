package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	requestsPerSecond = 50
	// requestsAtOnce bounds the client: when that many requests are unanswered
	// it sends no more.
	requestsAtOnce = 16
)

// counts is what the client has seen so far. It is immutable.
type counts struct {
	answers   int            // requests answered with status 200
	failed    int            // requests that were not
	lastError string         // why the last one failed; "" when none did
	served    map[string]int // by row key: answers in all
	rate      map[string]int // by row key: answers in the last second
	last      map[string]int // by row key: the value of answers when it last answered
}

// quiet returns how many answers have come in a row from other servers than
// these.
func (c *counts) quiet(keys ...string) int {
	last := 0
	for _, key := range keys {
		last = max(last, c.last[key])
	}
	return c.answers - last
}

// traffic is a client that sends requests to the front end at a steady rate.
type traffic struct {
	url string // of the front end, without a final slash
	now atomic.Pointer[counts]
}

func newTraffic(url string) *traffic {
	t := &traffic{url: url}
	t.now.Store(&counts{})
	return t
}

// counts returns what has been seen so far.
func (t *traffic) counts() *counts { return t.now.Load() }

// outcome is the end of one request.
type outcome struct {
	at  time.Time
	key string // who answered
	err error
}

// run sends requests until ctx ends: two of three to the web backend, the rest
// to api. It owns the counters.
func (t *traffic) run(ctx context.Context) error {
	transport := &http.Transport{MaxConnsPerHost: requestsAtOnce, MaxIdleConnsPerHost: requestsAtOnce}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}

	paths := make(chan string)
	outcomes := make(chan outcome)
	var senders sync.WaitGroup
	for range requestsAtOnce {
		senders.Go(func() {
			for path := range paths {
				key, err := fetch(ctx, client, t.url+path)
				outcomes <- outcome{at: time.Now(), key: key, err: err}
			}
		})
	}
	t.schedule(ctx, paths, outcomes)
	close(paths)
	go func() { senders.Wait(); close(outcomes) }()
	for range outcomes { // cut off by the end of ctx: neither answered nor failed
	}
	return nil
}

// schedule hands out requests and counts outcomes until ctx ends.
func (t *traffic) schedule(ctx context.Context, paths chan<- string, outcomes <-chan outcome) {
	tick := time.NewTicker(time.Second / requestsPerSecond)
	defer tick.Stop()
	var recent []outcome
	for sent := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			path := "/"
			if sent%3 == 2 {
				path = "/api/"
			}
			select {
			case paths <- path:
				sent++
			default: // every sender is busy
			}
		case o := <-outcomes:
			if o.err != nil && ctx.Err() != nil {
				return // our own end, not a failed request
			}
			recent = append(recent, o)
			for o.at.Sub(recent[0].at) > time.Second {
				recent = recent[1:]
			}
			t.now.Store(t.now.Load().with(o, recent))
		}
	}
}

// with returns the counts after one more outcome; recent are those of the last
// second.
func (c *counts) with(o outcome, recent []outcome) *counts {
	next := counts{
		answers: c.answers, failed: c.failed, lastError: c.lastError,
		served: map[string]int{}, rate: map[string]int{}, last: map[string]int{},
	}
	maps.Copy(next.served, c.served)
	maps.Copy(next.last, c.last)
	if o.err != nil {
		next.failed++
		next.lastError = o.err.Error()
	} else {
		next.answers++
		next.served[o.key]++
		next.last[o.key] = next.answers
	}
	for _, r := range recent {
		if r.err == nil {
			next.rate[r.key]++
		}
	}
	return &next
}

// fetch sends one request and returns the row key of the server that answered.
func fetch(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "", fmt.Errorf("body of %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: status %s", url, resp.Status)
	}
	key := resp.Header.Get(servedBy)
	if key == "" {
		return "", errors.New(url + ": answered by somebody else than the servers behind haproxy")
	}
	return key, nil
}
