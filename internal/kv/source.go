package kv

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	dep "github.com/hashicorp/consul-template/dependency"
)

const (
	// Wait is how long Consul holds a read that brings nothing new, and so how
	// often the state is known to be current. It is below the idle time-outs of
	// proxies that people put in front of Consul.
	Wait = 10 * time.Second
	// readTimeout bounds a read that Consul does not hold. A consistent read
	// without a leader is answered after 7 s (rpc_hold_timeout).
	readTimeout = 10 * time.Second
	// heldTimeout bounds a read that Consul holds: Consul adds up to a sixteenth
	// of the wait to it, and the answer takes its time too.
	heldTimeout = Wait + Wait/16 + readTimeout

	minBackoff = 250 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// source is the strict [dep.Dependency]. The library's view of it never sees
// an error or an unchanged read: the view's own rules (it blocks on an index of
// a lost epoch, drops other contents at the same index, delays changes that
// come shortly after an unchanged answer, gives up after some errors) would
// each be wrong here. It calls Fetch from one goroutine at a time.
type source struct {
	cfg    WatchConfig
	ctx    context.Context // ends with stop: Fetch is given none
	cancel context.CancelFunc
	notify func()

	busy  sync.Mutex   // held by Fetch, which alone uses the next five
	index uint64       // to block on; 0: do not block
	last  trace        // of the last read that was news
	next  time.Time    // not before this is the next read
	tries int          // failures in a row
	seed  maphash.Seed // of digests

	latest atomic.Pointer[Read]   // the last one that was news; nil before the first
	expect atomic.Pointer[string] // id that the sentinel must have; "": any
	again  atomic.Bool            // the next accepted read is news, whatever it brings
	health atomic.Pointer[Health]
}

func newSource(ctx context.Context, cfg WatchConfig, notify func()) *source {
	ctx, cancel := context.WithCancel(ctx)
	s := &source{cfg: cfg, ctx: ctx, cancel: cancel, notify: notify, seed: maphash.MakeSeed()}
	s.expect.Store(&cfg.ID)
	s.health.Store(&Health{})
	return s
}

// String is the name under which the library's functions tree and ls look for
// the keys of the prefix.
func (s *source) String() string { return "kv.list(" + StatePrefix(s.cfg.Root) + ")" }

// CanShare implements [dep.Dependency].
func (s *source) CanShare() bool { return false }

// Type implements [dep.Dependency].
func (s *source) Type() dep.Type { return dep.TypeConsul }

// Stop ends a Fetch in progress and all later ones.
func (s *source) Stop() { s.cancel() }

// join returns when the last Fetch has ended.
func (s *source) join() {
	s.busy.Lock()
	defer s.busy.Unlock()
}

// Fetch returns the next accepted read that differs from the last one. It tries
// until it has one, or until Stop.
func (s *source) Fetch(*dep.ClientSet, *dep.QueryOptions) (any, *dep.ResponseMetadata, error) {
	s.busy.Lock()
	defer s.busy.Unlock()
	for s.pause() {
		start := time.Now()
		read, err := s.once()
		if s.ctx.Err() != nil {
			break
		}
		took, changed := time.Since(start), err == nil && s.differs(read)
		if changed {
			s.latest.Store(read)
		}
		s.settle(read, err, changed, took)
		s.cfg.Observe(err, changed, took)
		s.notify()
		if changed {
			// The library keeps what it is given; the keys are not for it to keep.
			return read.Generation, &dep.ResponseMetadata{LastIndex: read.Generation}, nil
		}
	}
	return nil, nil, dep.ErrStopped
}

// pause waits until the next read is due, and reports whether there is to be one.
func (s *source) pause() bool {
	timer := time.NewTimer(time.Until(s.next))
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return false
	case <-timer.C:
		return s.ctx.Err() == nil
	}
}

// once reads once, and again without blocking if the index went backwards: data
// was restored, or a tombstone was collected.
func (s *source) once() (*Read, *ReadError) {
	answer, err := s.list(s.index)
	if err == nil && s.index != 0 && answer.Meta.LastIndex < s.index {
		answer, err = s.list(0)
	}
	if err != nil {
		return nil, classify(err, s.cfg.Address)
	}
	id, bad := guard{s.cfg.Root, s.cfg.Address, s.cfg.MaxKeys}.check(answer, *s.expect.Load())
	if bad != nil {
		return nil, bad
	}
	return &Read{Index: answer.Meta.LastIndex, At: time.Now(), ID: id, Pairs: keyPairs(answer.Pairs, StatePrefix(s.cfg.Root))}, nil
}

func (s *source) list(index uint64) (*Answer, error) {
	limit := readTimeout
	if index != 0 {
		limit = heldTimeout
	}
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	return s.cfg.List(ctx, index)
}

// differs reports whether read is news, and then makes it what the next one is
// compared with.
func (s *source) differs(read *Read) bool {
	now := trace{generation: s.last.generation, index: read.Index, id: read.ID, digest: digest(s.seed, read.Pairs)}
	if now == s.last && s.last.generation != 0 && !s.again.Swap(false) {
		return false
	}
	s.again.Store(false)
	now.generation++
	read.Generation, s.last = now.generation, now
	return true
}

// settle records how a read ended and when the next one is due.
func (s *source) settle(read *Read, err *ReadError, changed bool, took time.Duration) {
	health, now := *s.health.Load(), time.Now()
	if err == nil || err.answered() {
		health.Contact = now
	}
	if err != nil {
		if health.Failure == nil || health.Failure.Reason != err.Reason {
			health.Since = now
		}
		health.Failure = err
		// Never block on an index of what may be gone.
		s.index = 0
		s.next = now.Add(backoff(s.tries))
		s.tries++
		s.health.Store(&health)
		return
	}
	if changed {
		s.expect.Store(&read.ID)
	}
	s.index, s.tries = read.Index, 0
	s.next = now.Add(s.cfg.Quiet)
	if !changed && took >= s.cfg.Quiet {
		// Consul held it, so it paces the reads: to wait as well would delay a
		// change that comes now, and nothing was rendered to make it wait for.
		s.next = now
	}
	health.Failure, health.Since = nil, time.Time{}
	health.Accepted, health.Generation = read.At, s.last.generation
	s.health.Store(&health)
}

// backoff returns how long to wait after the given number of earlier failures
// in a row: at random, so that a fleet does not come back as one.
func backoff(tries int) time.Duration {
	most := min(2*minBackoff<<min(tries, 10), maxBackoff)
	return minBackoff + rand.N(most-minBackoff+1)
}
