package devstore

import (
	"fmt"
	"net/http"
	"strings"
)

// sessionID returns what follows a route's pattern in the path.
func sessionID(r *http.Request, pattern, what string) (string, error) {
	id := strings.TrimPrefix(r.URL.Path, pattern)
	if id == "" {
		return "", badRequest("Missing %s", what)
	}
	return id, nil
}

// readOptions is parseOptions for a request that may not name a namespace.
func readOptions(r *http.Request) (options, error) {
	o, err := parseOptions(r)
	if err != nil {
		return o, err
	}
	return o, refuseEnterprise(r)
}

func (s *Store) destroySession(w http.ResponseWriter, r *http.Request) error {
	if err := refuseEnterprise(r); err != nil {
		return err
	}
	id, err := sessionID(r, "/v1/session/destroy/", "session")
	if err != nil {
		return err
	}
	err = s.apply(func(d *draft) error {
		d.endSession(id)
		delete(s.deadlines, strings.ToLower(id))
		return nil
	})
	if err != nil {
		return err
	}
	return reply(w, r, http.StatusOK, true)
}

func (s *Store) renewSession(w http.ResponseWriter, r *http.Request) error {
	if _, err := readOptions(r); err != nil {
		return err
	}
	id, err := sessionID(r, "/v1/session/renew/", "session")
	if err != nil {
		return err
	}
	sess, err := s.renew(id)
	if err != nil {
		return err
	}
	if sess == nil {
		return &statusError{http.StatusNotFound, fmt.Sprintf("Session id '%s' not found", id)}
	}
	return reply(w, r, http.StatusOK, []*session{sess})
}

// renew gives a session its TTL anew. It returns nil for one that has ended.
func (s *Store) renew(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done.Err() != nil {
		return nil, errNoLeader
	}
	sess := s.cur.Load().session(id)
	if sess != nil {
		s.extend(sess.ID, sess.ttl())
	}
	return sess, nil
}

func (s *Store) sessionInfo(w http.ResponseWriter, r *http.Request) error {
	o, err := readOptions(r)
	if err != nil {
		return err
	}
	id, err := sessionID(r, "/v1/session/info/", "session")
	if err != nil {
		return err
	}
	return s.replySessions(w, r, o, func(st *state) ([]*session, bool) {
		if sess := st.session(id); sess != nil {
			return []*session{sess}, false
		}
		return nil, true
	})
}

func (s *Store) listSessions(w http.ResponseWriter, r *http.Request) error {
	o, err := readOptions(r)
	if err != nil {
		return err
	}
	return s.replySessions(w, r, o, func(st *state) ([]*session, bool) { return st.sessions, false })
}

func (s *Store) sessionsOfNode(w http.ResponseWriter, r *http.Request) error {
	o, err := readOptions(r)
	if err != nil {
		return err
	}
	node, err := sessionID(r, "/v1/session/node/", "node name")
	if err != nil {
		return err
	}
	return s.replySessions(w, r, o, func(st *state) ([]*session, bool) {
		if !strings.EqualFold(node, NodeName) {
			return nil, false
		}
		return st.sessions, false
	})
}

// replySessions answers with what pick finds, which may block. The index is
// that of all sessions.
func (s *Store) replySessions(
	w http.ResponseWriter, r *http.Request, o options, pick func(*state) (list []*session, missing bool),
) error {
	var list []*session
	f, err := s.read(r.Context(), o, func(st *state) (f found) {
		list, f.missing = pick(st)
		f.index = st.sessionIndex
		return f
	})
	if err != nil {
		return err
	}
	setMeta(w, f)
	if list == nil {
		list = []*session{}
	}
	return reply(w, r, http.StatusOK, list)
}
