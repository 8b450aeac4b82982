package kv

import (
	"context"
	"errors"
	"fmt"

	consulapi "github.com/hashicorp/consul/api"
)

// Marked is what [Store.Init] found or did.
type Marked struct {
	ID      string // of the sentinel
	Created bool   // false: it was there before
	Keys    int    // other keys under the prefix
}

// An OtherIDError says that the prefix is marked with another id than asked for.
type OtherIDError struct {
	Key      string // of the sentinel
	Has      string // id
	AskedFor string // id
}

// Error says what to do.
func (e *OtherIDError) Error() string {
	return fmt.Sprintf("%s has id %s, not %s: this prefix was initialised before, and hosts follow it; "+
		"check the address and --kv-root; to replace the id all the same, delete the key first (consul kv delete %s)",
		e.Key, e.Has, e.AskedFor, e.Key)
}

// Init marks the prefix as meant, by its sentinel. With id "" a new prefix gets
// a random one, and a marked prefix keeps what it has. Otherwise a new prefix,
// or one whose sentinel is damaged, gets id, and one with another id is
// refused with an [*OtherIDError]. With dry set nothing is written.
func (s *Store) Init(ctx context.Context, id string, dry bool) (Marked, error) {
	if id != "" {
		if err := CheckID(id); err != nil {
			return Marked{}, err
		}
	}
	m, at, err := s.marked(ctx, id)
	if err != nil || m.ID != "" {
		return m, err
	}
	m.ID, m.Created = id, true
	if id == "" {
		m.ID = newID()
	}
	if dry {
		return m, nil
	}
	put := consulapi.KVTxnOp{Verb: consulapi.KVCAS, Key: SentinelKey(s.root), Index: at, Value: []byte(FormatSentinel(m.ID))}
	_, err = s.commit(ctx, consulapi.TxnOps{{KV: &put}})
	if _, lost := errors.AsType[*ConflictError](err); lost {
		// Somebody else was first: what they wrote counts.
		m, _, err = s.marked(ctx, id)
		if err == nil && m.ID == "" {
			err = &WriteError{Message: SentinelKey(s.root) + " comes and goes: is somebody deleting the prefix? try again"}
		}
	}
	return m, err
}

// marked returns the mark that the prefix has. ID is empty if there is none, or
// if it is damaged and an id is given to repair it with; at is the index to
// compare with then.
func (s *Store) marked(ctx context.Context, id string) (m Marked, at uint64, err error) {
	answer, err := s.list(ctx, 0)
	if err != nil {
		return m, 0, classify(err, s.address)
	}
	g := guard{root: s.root, address: s.address}
	if err := g.checkMeta(answer); err != nil {
		return m, 0, err
	}
	sentinel, bad := g.checkPairs(answer.Pairs)
	if bad != nil {
		return m, 0, bad
	}
	m.Keys = len(answer.Pairs)
	if sentinel == nil {
		return m, 0, nil
	}
	m.Keys--
	has, err := ParseSentinel(string(sentinel.Value))
	switch {
	case err != nil && id != "":
		return m, sentinel.ModifyIndex, nil
	case err != nil:
		return m, 0, fmt.Errorf("%s: %w; repair it with hadrain init --id UUID", SentinelKey(s.root), err)
	case id != "" && id != has:
		return m, 0, &OtherIDError{Key: SentinelKey(s.root), Has: has, AskedFor: id}
	}
	m.ID = has
	return m, 0, nil
}

// newID returns a random UUID.
func newID() string {
	h := []byte(randomHex(16))
	h[12] = '4'             // version: random
	h[16] = "89ab"[h[16]&3] // variant of RFC 9562
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}
