package devstore

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// newID returns a random id in the form of a UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// extend gives a session its TTL from now. The caller holds s.mu.
func (s *Store) extend(id string, ttl time.Duration) {
	if ttl <= 0 {
		return
	}
	s.deadlines[strings.ToLower(id)] = time.Now().Add(ttlMultiplier * ttl)
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// expire ends sessions whose time is up, until the store closes.
func (s *Store) expire() {
	for {
		var due <-chan time.Time // nil, which never fires: no session has a deadline
		if next, ok := s.endExpired(); ok {
			due = time.After(time.Until(next))
		}
		select {
		case <-s.done.Done():
			return
		case <-s.kick:
		case <-due:
		}
	}
}

// endExpired ends the sessions whose deadline has passed and returns the
// earliest of the others.
func (s *Store) endExpired() (next time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for id, end := range s.deadlines {
		switch {
		case !end.After(now):
			delete(s.deadlines, id)
			// The only error is that the store has closed, and then nobody is left to see the session end.
			_ = s.applyLocked(func(d *draft) error { d.endSession(id); return nil })
		case !ok || end.Before(next):
			next, ok = end, true
		}
	}
	return next, ok
}
