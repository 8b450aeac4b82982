package devstore

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxValue is the largest value in bytes, and the largest transaction
// (Consul's kv_max_value_size and txn_max_req_len).
const maxValue = 512 << 10

func (s *Store) serveKV(w http.ResponseWriter, r *http.Request) error {
	o, err := parseOptions(r)
	if err != nil {
		return err
	}
	if err := refuseEnterprise(r); err != nil {
		return err
	}
	key := strings.TrimPrefix(r.URL.Path, "/v1/kv/")
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && q.Has("keys"):
		return s.getKeys(w, r, key, o)
	case key == "" && !(q.Has("recurse") && r.Method != http.MethodPut):
		return badRequest("Missing key name")
	case r.Method == http.MethodPut:
		return s.putKey(w, r, key)
	case r.Method == http.MethodDelete:
		return s.deleteKey(w, r, key)
	case q.Has("recurse"):
		return s.getTree(w, r, key, o)
	}
	return s.getKey(w, r, key, o)
}

func (s *Store) getKey(w http.ResponseWriter, r *http.Request, key string, o options) error {
	var e *entry
	f, err := s.read(r.Context(), o, func(st *state) found {
		if _, e = st.find(key); e == nil {
			return found{index: st.kvIndex, missing: true}
		}
		return found{index: e.ModifyIndex}
	})
	if err != nil {
		return err
	}
	setMeta(w, f)
	if e == nil {
		w.WriteHeader(http.StatusNotFound)
		return nil
	}
	if !r.URL.Query().Has("raw") {
		return reply(w, r, http.StatusOK, []*entry{e})
	}
	h := w.Header()
	h.Set("Content-Length", strconv.Itoa(len(e.Value)))
	h.Set("Content-Type", "text/plain")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox")
	_, _ = w.Write(e.Value) // a client that has gone needs no answer
	return nil
}

func (s *Store) getTree(w http.ResponseWriter, r *http.Request, prefix string, o options) error {
	var entries []*entry
	f, err := s.read(r.Context(), o, func(st *state) (f found) {
		f.index, entries = st.list(prefix)
		return f
	})
	if err != nil {
		return err
	}
	setMeta(w, f)
	if len(entries) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return nil
	}
	return reply(w, r, http.StatusOK, entries)
}

func (s *Store) getKeys(w http.ResponseWriter, r *http.Request, prefix string, o options) error {
	q := r.URL.Query()
	separator := q.Get("seperator") // a misspelling that Consul keeps serving
	if q.Has("separator") {
		separator = q.Get("separator")
	}
	var keys []string
	f, err := s.read(r.Context(), o, func(st *state) found {
		index, entries := st.list(prefix)
		keys = cut(entries, len(prefix), separator)
		return found{index: index}
	})
	if err != nil {
		return err
	}
	setMeta(w, f)
	if len(keys) == 0 && prefix != "" {
		w.WriteHeader(http.StatusNotFound)
		return nil
	}
	return reply(w, r, http.StatusOK, keys)
}

// cut returns the entries' keys, each up to the first separator after the
// prefix, without repetition. Entries are sorted, so equal ones are neighbours.
func cut(entries []*entry, prefix int, separator string) []string {
	keys := make([]string, 0, len(entries))
	for _, e := range entries {
		key := e.Key
		if i := strings.Index(key[prefix:], separator); separator != "" && i >= 0 {
			key = key[:prefix+i+len(separator)]
			if n := len(keys); n > 0 && keys[n-1] == key {
				continue
			}
		}
		keys = append(keys, key)
	}
	return keys
}

func (s *Store) putKey(w http.ResponseWriter, r *http.Request, key string) error {
	q := r.URL.Query()
	if err := conflict(q, "cas", "acquire", "release"); err != nil {
		return err
	}
	e := entry{Key: key}
	var err error
	if q.Has("flags") {
		if e.Flags, err = strconv.ParseUint(q.Get("flags"), 10, 64); err != nil {
			return err
		}
	}
	if q.Has("cas") {
		if e.ModifyIndex, err = strconv.ParseUint(q.Get("cas"), 10, 64); err != nil {
			return err
		}
	}
	if e.Value, err = readValue(w, r); err != nil {
		return err
	}
	ok := true
	err = s.apply(func(d *draft) (err error) {
		switch {
		case q.Has("release"):
			e.Session = q.Get("release")
			_, ok, err = d.unlock(e)
		case q.Has("acquire"):
			e.Session = q.Get("acquire")
			if ok = !d.delayed(key); ok {
				_, ok, err = d.lock(e)
			}
		case q.Has("cas"):
			_, ok = d.cas(e)
		default:
			d.put(e, true)
		}
		return wrapRaft(err)
	})
	if err != nil {
		return err
	}
	return reply(w, r, http.StatusOK, ok)
}

// wrapRaft puts before an error what Consul's RPC layer does.
func wrapRaft(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("raft apply failed: %w", err)
}

func readValue(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	const see = "See https://www.consul.io/docs/agent/config/config-files#kv_max_value_size."
	if r.ContentLength > maxValue {
		return nil, tooLarge("Request body(%d bytes) too large, max size: %d bytes. %s", r.ContentLength, maxValue, see)
	}
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxValue))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge("Request body too large, max size: %d bytes. %s", maxValue, see)
	}
	if err != nil {
		return nil, fmt.Errorf("read the value of %s: %w", r.URL.Path, err)
	}
	return value, nil
}

func (s *Store) deleteKey(w http.ResponseWriter, r *http.Request, key string) error {
	q := r.URL.Query()
	if err := conflict(q, "recurse", "cas"); err != nil {
		return err
	}
	var index uint64
	if q.Has("cas") {
		var err error
		if index, err = strconv.ParseUint(q.Get("cas"), 10, 64); err != nil {
			return err
		}
	}
	ok := true
	err := s.apply(func(d *draft) error {
		switch {
		case q.Has("recurse"):
			d.removeTree(key)
		case q.Has("cas"):
			ok = d.removeCAS(key, index)
		default:
			d.remove(key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return reply(w, r, http.StatusOK, ok)
}

// conflict refuses parameters of which at most one may be given.
func conflict(q url.Values, names ...string) error {
	given := 0
	for _, name := range names {
		if q.Has(name) {
			given++
		}
	}
	if given > 1 {
		return badRequest("Conflicting flags: %s", q.Encode())
	}
	return nil
}
