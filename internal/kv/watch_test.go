package kv_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/kv"
)

const (
	idA = "6f1c7c0a-4d9e-4c65-8f0e-2b1c9a7d5e43"
	idB = "00000000-4d9e-4c65-8f0e-2b1c9a7d5e43"
)

// answer returns a good answer with the sentinel and keys, given as key, value.
func answer(index uint64, id string, kvs ...string) *kv.Answer {
	pairs := consulapi.KVPairs{{Key: "hadrain/state/.hadrain", Value: []byte("v1 id=" + id)}}
	for i := 0; i < len(kvs); i += 2 {
		pairs = append(pairs, &consulapi.KVPair{Key: "hadrain/state/" + kvs[i], Value: []byte(kvs[i+1])})
	}
	return &kv.Answer{Pairs: pairs, Meta: consulapi.QueryMeta{LastIndex: index, KnownLeader: true}}
}

// script is a Consul that answers by steps; after the last one it hangs.
type script struct {
	start time.Time
	steps []step

	mu    sync.Mutex
	calls []string // "seconds index" of each read
}

type step struct {
	after  time.Duration // how long the read is held
	answer *kv.Answer
	err    error
}

func (s *script) list(ctx context.Context, index uint64) (*kv.Answer, error) {
	s.mu.Lock()
	n := len(s.calls)
	s.calls = append(s.calls, fmt.Sprintf("%.2f %d", time.Since(s.start).Seconds(), index))
	s.mu.Unlock()
	if n >= len(s.steps) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(s.steps[n].after):
		return s.steps[n].answer, s.steps[n].err
	}
}

// play runs a watch on the script in a bubble for as long as body runs.
func play(t *testing.T, cfg kv.WatchConfig, steps []step, body func(w *kv.Watch, s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{start: time.Now(), steps: steps}
		cfg.Root, cfg.Address, cfg.List = "hadrain", "test", s.list
		if cfg.Quiet == 0 {
			cfg.Quiet = 200 * time.Millisecond
		}
		if cfg.Observe == nil {
			cfg.Observe = func(*kv.ReadError, bool, time.Duration) {}
		}
		ctx, cancel := context.WithCancel(t.Context())
		w := kv.NewWatch(ctx, cfg)
		done := make(chan error, 1)
		go func() { done <- w.Run() }()
		body(w, s)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
	})
}

// after lets the bubble's time pass.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestBurst(t *testing.T) {
	steps := []step{
		{0, answer(10, idA), nil},
		{time.Second, answer(11, idA, "a", "drain"), nil},
		{0, answer(12, idA, "a", "ready"), nil},
		{0, answer(13, idA, "a", "maint"), nil},
	}
	play(t, kv.WatchConfig{}, steps, func(w *kv.Watch, s *script) {
		after(1200 * time.Millisecond)
		if got := w.Latest(); got.Index != 11 || got.Generation != 2 {
			t.Errorf("the first change of a burst: index %d, generation %d, want 11, 2 at once", got.Index, got.Generation)
		}
		after(5 * time.Second)
		if got := w.Latest(); got.Index != 13 {
			t.Errorf("after the burst: index %d, want 13", got.Index)
		}
		want := "[0.00 0 0.20 10 1.40 11 1.60 12 1.80 13]"
		if got := fmt.Sprint(s.calls); got != want {
			t.Errorf("reads at %s, want %s", got, want)
		}
	})
}

func TestUnchangedReadCounts(t *testing.T) {
	steps := []step{{0, answer(10, idA), nil}, {10 * time.Second, answer(10, idA), nil}}
	play(t, kv.WatchConfig{}, steps, func(w *kv.Watch, _ *script) {
		after(11 * time.Second)
		if got := time.Since(w.Health().Accepted); got != 800*time.Millisecond { // 0.2 s of quiet, then 10 s
			t.Errorf("last accepted read %v ago, want 0.8s", got)
		}
		if got := w.Latest().Generation; got != 1 {
			t.Errorf("generation %d after an unchanged read, want 1", got)
		}
	})
}

// A change behind an unchanged read is as quick as any other: only changes are
// followed by the quiet time, and answers that were not held.
func TestPace(t *testing.T) {
	unchanged := step{10 * time.Second, answer(10, idA), nil}
	steps := []step{{0, answer(10, idA), nil}, unchanged, {0, answer(11, idA, "a", "drain"), nil}}
	play(t, kv.WatchConfig{}, steps, func(w *kv.Watch, s *script) {
		after(10*time.Second + 201*time.Millisecond)
		if got := w.Latest(); got.Index != 11 {
			t.Errorf("index %d right behind an unchanged read, want 11 at once", got.Index)
		}
		after(time.Second)
		if got, want := fmt.Sprint(s.calls), "[0.00 0 0.20 10 10.20 10 10.40 11]"; got != want {
			t.Errorf("reads at %s, want %s", got, want)
		}
	})
	unheld := step{199 * time.Millisecond, answer(10, idA), nil}
	play(t, kv.WatchConfig{}, []step{unheld, unheld, unheld, unheld}, func(_ *kv.Watch, s *script) {
		after(1300 * time.Millisecond)
		if got, want := fmt.Sprint(s.calls), "[0.00 0 0.40 10 0.80 10 1.20 10]"; got != want {
			t.Errorf("reads of a server that holds none at %s, want %s", got, want)
		}
	})
}

// The library drops both: other contents at the same index, and the same
// contents at another index.
func TestNews(t *testing.T) {
	steps := []step{
		{0, answer(10, idA, "a", "drain"), nil},
		{time.Second, answer(10, idA, "a", "maint"), nil},
		{time.Second, answer(11, idA, "a", "maint"), nil},
	}
	play(t, kv.WatchConfig{}, steps, func(w *kv.Watch, _ *script) {
		after(4 * time.Second)
		got := w.Latest()
		if got.Generation != 3 || got.Index != 11 || got.Pairs[1].Value != "maint" {
			t.Errorf("generation %d, index %d, value %q; want 3, 11, maint", got.Generation, got.Index, got.Pairs[1].Value)
		}
	})
}

func TestBackwardIndex(t *testing.T) {
	steps := []step{
		{0, answer(100, idA, "a", "drain"), nil},
		{time.Second, answer(90, idA), nil},
		{0, answer(91, idA, "a", "ready"), nil},
	}
	play(t, kv.WatchConfig{}, steps, func(w *kv.Watch, s *script) {
		after(2 * time.Second)
		if got := w.Latest(); got.Index != 91 || len(got.Pairs) != 2 {
			t.Errorf("index %d with %d pairs, want 91 with 2", got.Index, len(got.Pairs))
		}
		want := "[0.00 0 0.20 100 1.20 0 1.40 91]"
		if got := fmt.Sprint(s.calls); got != want {
			t.Errorf("reads at %s, want %s", got, want)
		}
	})
}

func TestErrorsStartOver(t *testing.T) {
	steps := []step{{0, answer(100, idA), nil}, {0, nil, errors.New("boom")}, {0, answer(3, idA, "a", "drain"), nil}}
	play(t, kv.WatchConfig{}, steps, func(w *kv.Watch, s *script) {
		after(2 * time.Second)
		if got := w.Latest(); got.Index != 3 || w.Health().Failure != nil {
			t.Errorf("index %d, failure %v; want 3 and none", got.Index, w.Health().Failure)
		}
		if got := s.calls[2]; got[len(got)-2:] != " 0" {
			t.Errorf("the read after an error was %q, want index 0", got)
		}
	})
}

// The library gives up after some errors, or waits for somebody to take them. It
// sees none: a Consul that was away for an hour is followed again.
func TestManyFailuresEnd(t *testing.T) {
	var steps []step
	for range 1000 {
		steps = append(steps, step{0, nil, consulapi.StatusError{Code: 500, Body: "No cluster leader"}})
	}
	steps = append(steps, step{0, answer(7, idA, "a", "drain"), nil})
	play(t, kv.WatchConfig{}, steps, func(w *kv.Watch, _ *script) {
		after(2 * time.Hour)
		if got := w.Latest(); got == nil || got.Index != 7 {
			t.Errorf("after the failures: %+v, want index 7", got)
		}
	})
}

func TestBackoff(t *testing.T) {
	boom := step{0, nil, errors.New("boom")}
	var steps []step
	for range 200 {
		steps = append(steps, boom)
	}
	play(t, kv.WatchConfig{}, steps, func(_ *kv.Watch, s *script) {
		after(time.Minute)
		var last float64
		for i, call := range s.calls {
			var at float64
			if _, err := fmt.Sscan(call, &at); err != nil {
				t.Fatalf("call %q: %v", call, err)
			}
			if gap := at - last; i > 0 && (gap < 0.24 || gap > 5.01) {
				t.Errorf("read %d came %.2f s after the failure before it, want 0.25 to 5", i, gap)
			}
			last = at
		}
		if n := len(s.calls); n < 13 || n > 60 {
			t.Errorf("%d reads in a minute of failures, want about 25", n)
		}
	})
}

func TestHungReads(t *testing.T) {
	play(t, kv.WatchConfig{}, []step{{0, answer(7, idA), nil}}, func(w *kv.Watch, _ *script) {
		after(20 * time.Second)
		if f := w.Health().Failure; f != nil {
			t.Fatalf("a held read failed early: %v", f)
		}
		after(2 * time.Second)
		if f := w.Health().Failure; f == nil || f.Reason != kv.Timeout {
			t.Errorf("a hung read: %v, want %s within 22 s", f, kv.Timeout)
		}
	})
	play(t, kv.WatchConfig{}, nil, func(w *kv.Watch, _ *script) {
		after(11 * time.Second)
		if f := w.Health().Failure; f == nil || f.Reason != kv.Timeout {
			t.Errorf("a hung first read: %v, want %s within 10 s", f, kv.Timeout)
		}
		if !w.Health().Contact.IsZero() {
			t.Error("a read without answer counts as contact")
		}
	})
}

func TestOtherID(t *testing.T) {
	steps := []step{{0, answer(7, idB), nil}, {time.Second, answer(7, idB), nil}}
	play(t, kv.WatchConfig{ID: idA}, steps, func(w *kv.Watch, _ *script) {
		after(time.Millisecond)
		if f := w.Health().Failure; f == nil || f.Reason != kv.WrongSentinel || w.Latest() != nil {
			t.Fatalf("another id: %v, want %s and no read", f, kv.WrongSentinel)
		}
		w.ExpectAny()
		after(2 * time.Second)
		if got := w.Latest(); got == nil || got.ID != idB {
			t.Errorf("after ExpectAny: %+v, want id %s", got, idB)
		}
	})
}

func TestStopsAtOnce(t *testing.T) {
	play(t, kv.WatchConfig{}, []step{{0, answer(7, idA), nil}}, func(_ *kv.Watch, s *script) {
		after(3 * time.Second)
		if len(s.calls) != 2 {
			t.Errorf("%d reads, want the second one to be held", len(s.calls))
		}
	})
	// play fails on a goroutine that does not end: the bubble deadlocks.
}

// Keys that were released are still compared with, and come again when they are
// asked for.
func TestRelease(t *testing.T) {
	same := step{time.Second, answer(7, idA, "a", "drain"), nil}
	play(t, kv.WatchConfig{}, []step{same, same, same}, func(w *kv.Watch, _ *script) {
		after(1100 * time.Millisecond)
		old := w.Latest()
		w.Release(old)
		if got := w.Latest(); got.Pairs != nil || got.Index != 7 || len(old.Pairs) != 2 {
			t.Errorf("released: %+v, and the one before has %d pairs, want none and 2", got, len(old.Pairs))
		}
		after(1200 * time.Millisecond)
		if got := w.Latest(); got.Generation != 1 {
			t.Errorf("generation %d after the same again, want 1", got.Generation)
		}
		w.ExpectAny()
		after(time.Second)
		got := w.Latest()
		if got.Generation != 2 || len(got.Pairs) != 2 {
			t.Errorf("generation %d with %d pairs after ExpectAny, want 2 and 2", got.Generation, len(got.Pairs))
		}
		w.Release(old)
		if w.Latest() != got {
			t.Error("the keys of a newer read were released with those of an older one")
		}
	})
}
