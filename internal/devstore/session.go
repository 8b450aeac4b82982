package devstore

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The limits of sessions (Consul's session_ttl_min default, SessionTTLMax,
// SessionTTLMultiplier, MaxLockDelay) and what a session has when its maker
// says nothing.
const (
	minTTL           = 10 * time.Second
	maxTTL           = 24 * time.Hour
	ttlMultiplier    = 2 // a session may outlive its TTL, never fall short of it
	maxLockDelay     = 60 * time.Second
	defaultLockDelay = 15 * time.Second

	// A LockDelay below 1,000 was meant as seconds, not nanoseconds.
	minDelayNumber = 1000

	behaviorRelease = "release"
	behaviorDelete  = "delete"
	serfHealth      = "serfHealth" // the one check that exists here, always passing
)

// A session is the owner of locks, in the shape of Consul's JSON. It never
// changes once a state holds it.
type session struct {
	ID            string
	Name          string
	Node          string
	LockDelay     time.Duration // nanoseconds
	Behavior      string        // what its end does to the keys it holds
	TTL           string
	NodeChecks    []string
	ServiceChecks []serviceCheck
	Checks        []string `json:",omitempty"`
	CreateIndex   uint64
	ModifyIndex   uint64
}

type serviceCheck struct {
	ID        string
	Namespace string
}

// UnmarshalJSON accepts a LockDelay as text ("15s") or as a number.
func (s *session) UnmarshalJSON(data []byte) error {
	type plain session
	in := struct {
		LockDelay any
		*plain
	}{plain: (*plain)(s)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if in.LockDelay == nil {
		return nil
	}
	var delay time.Duration
	switch v := in.LockDelay.(type) {
	case string:
		d, err := time.ParseDuration(v)
		if err != nil {
			return err
		}
		delay = d
	case float64:
		delay = time.Duration(v)
	}
	if delay < minDelayNumber {
		delay *= time.Second
	}
	s.LockDelay = delay
	return nil
}

// settleChecks makes one of the two fields for node checks, of which the old
// one (Checks) may still be used, say what is meant.
func (s *session) settleChecks() {
	switch {
	case len(s.Checks) == 0:
		s.NodeChecks = []string{}
	case len(s.Checks) == 1 && s.Checks[0] == serfHealth, len(s.NodeChecks) == 0:
		s.Checks = nil
	}
}

// check refuses a session that Consul would not make.
func (s *session) check() error {
	if s.Behavior == "" {
		s.Behavior = behaviorRelease
	}
	if s.Behavior != behaviorRelease && s.Behavior != behaviorDelete {
		return failure("Invalid Behavior setting '%s'", s.Behavior)
	}
	if s.TTL != "" {
		ttl, err := time.ParseDuration(s.TTL)
		if err != nil {
			return failure("Session TTL '%s' invalid: %v", s.TTL, err)
		}
		if ttl != 0 && (ttl < minTTL || ttl > maxTTL) {
			return failure("Invalid Session TTL '%d', must be between [%v=%v]", ttl, minTTL, maxTTL)
		}
	}
	return nil
}

// ttl is 0 for a session that does not expire.
func (s *session) ttl() time.Duration {
	ttl, err := time.ParseDuration(s.TTL)
	if err != nil {
		return 0 // no TTL; check refused what cannot be parsed
	}
	return ttl
}

// place returns where a session is, or would be, in the order of their ids.
func (s *state) place(id string) (int, bool) {
	return slices.BinarySearchFunc(s.sessions, strings.ToLower(id), func(e *session, id string) int {
		return cmp.Compare(e.ID, id)
	})
}

// session returns the session of an id, letter case ignored, or nil.
func (s *state) session(id string) *session {
	if i, ok := s.place(id); ok {
		return s.sessions[i]
	}
	return nil
}

func (d *draft) addSession(sess session) error {
	if sess.Node != NodeName {
		return failure("apply failed: Missing node registration")
	}
	for _, id := range slices.Concat(sess.NodeChecks, sess.Checks) {
		if id != serfHealth {
			return failure("apply failed: Missing check '%s' registration", id)
		}
	}
	for _, check := range sess.ServiceChecks {
		return failure("apply failed: Missing check '%s' registration", check.ID)
	}
	sess.CreateIndex, sess.ModifyIndex = d.index, d.index
	i, _ := d.place(sess.ID)
	d.sessions = slices.Insert(slices.Clone(d.sessions), i, &sess)
	d.touchSessions()
	return nil
}

// endSession removes a session and releases or deletes the keys it holds. For
// the lock delay nobody may lock these keys again, so that whoever held the
// lock without knowing of its end has time to notice.
func (d *draft) endSession(id string) {
	i, ok := d.place(id)
	if !ok {
		return
	}
	sess := d.sessions[i]
	d.sessions = slices.Delete(slices.Clone(d.sessions), i, i+1)
	d.touchSessions()
	var held []*entry
	for _, e := range d.entries {
		if strings.EqualFold(e.Session, sess.ID) {
			held = append(held, e)
		}
	}
	delay := min(sess.LockDelay, maxLockDelay)
	for _, e := range held {
		if sess.Behavior == behaviorDelete {
			d.remove(e.Key)
		} else {
			free := *e
			free.Session = ""
			d.put(free, false)
		}
		if delay > 0 {
			d.delayLock(e.Key, d.now.Add(delay))
		}
	}
}

func (s *Store) createSession(w http.ResponseWriter, r *http.Request) error {
	if err := refuseEnterprise(r); err != nil {
		return err
	}
	sess := session{
		Node:       NodeName,
		NodeChecks: []string{serfHealth},
		Checks:     []string{serfHealth},
		LockDelay:  defaultLockDelay,
		Behavior:   behaviorRelease,
	}
	if r.ContentLength > 0 {
		body := http.MaxBytesReader(w, r.Body, maxValue)
		if err := json.NewDecoder(body).Decode(&sess); err != nil {
			return badRequest("Request decode failed: %v", err)
		}
	}
	sess.settleChecks()
	if sess.Node == "" {
		return failure("Must provide Node")
	}
	if err := sess.check(); err != nil {
		return err
	}
	sess.ID = newID()
	err := s.apply(func(d *draft) error {
		if err := d.addSession(sess); err != nil {
			return err
		}
		s.extend(sess.ID, sess.ttl())
		return nil
	})
	if err != nil {
		return err
	}
	return reply(w, r, http.StatusOK, struct{ ID string }{sess.ID})
}
