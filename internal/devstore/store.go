package devstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// firstIndex is the index before the first write. Consul's own first writes are
// internal (the raft configuration), so clients never see an index of 1 that
// stands for data; they may take 1 for "nothing yet".
const firstIndex = 1

// A Store is an in-memory key/value store with sessions and an [http.Handler]
// that serves it under Consul's paths. Whoever serves it owns the listener.
// Make one with [New] and end it with [Store.Close].
type Store struct {
	done context.Context // ends when the store closes
	stop context.CancelFunc
	work sync.WaitGroup // the goroutine that expires sessions
	kick chan struct{}  // level trigger: a deadline is new or moved

	cur atomic.Pointer[state] // what readers see

	mu        sync.Mutex           // held by every write
	index     uint64               // of the last command, also of one that changed nothing
	deadlines map[string]time.Time // session id to its end
}

// New returns an empty store. It runs one goroutine, which ends in
// [Store.Close].
func New() *Store {
	done, stop := context.WithCancel(context.Background())
	s := &Store{
		done:      done,
		stop:      stop,
		kick:      make(chan struct{}, 1),
		index:     firstIndex,
		deadlines: make(map[string]time.Time),
	}
	s.cur.Store(&state{next: make(chan struct{})})
	s.work.Go(s.expire)
	return s
}

// Close ends the store: blocked queries and every later request get the answer
// of a cluster without a leader, status 500. It waits for the store's goroutine
// but not for requests, which belong to whoever serves them. A second call does
// nothing.
func (s *Store) Close() {
	s.mu.Lock()
	s.stop() // under the lock: no write is half done when Close returns
	s.mu.Unlock()
	s.work.Wait()
}

// apply runs one command: edit changes a draft of the state, which readers see
// as a whole when edit returns nil and never when it returns an error.
func (s *Store) apply(edit func(*draft) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applyLocked(edit)
}

func (s *Store) applyLocked(edit func(*draft) error) error {
	if s.done.Err() != nil {
		return errNoLeader
	}
	old := s.cur.Load()
	s.index++
	d := newDraft(old, s.index)
	if err := edit(d); err != nil {
		return err
	}
	if !d.changed {
		return nil
	}
	d.next = make(chan struct{})
	s.cur.Store(&d.state)
	close(old.next)
	return nil
}
