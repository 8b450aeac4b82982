package kv

import (
	"context"
	"fmt"
	"strings"
	"time"

	consulapi "github.com/hashicorp/consul/api"
)

// A Store reads and writes Hadrain's keys under one root. It is what the CLI
// uses; the daemons only watch. Methods may be called by several goroutines.
type Store struct {
	client  *consulapi.Client
	list    ListFunc
	root    string
	address string
}

// NewStore returns the store at root in the Consul that c reaches. It contacts
// nobody.
func NewStore(c Config, root string) (*Store, error) {
	if err := CheckRoot(root); err != nil {
		return nil, err
	}
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	return &Store{client: client, list: c.Lister(client, root), root: root, address: c.Shown()}, nil
}

// Root returns the KV root.
func (s *Store) Root() string { return s.root }

// Address returns Consul's address for people, without credentials.
func (s *Store) Address() string { return s.address }

// A State is everything under the state prefix at one moment.
type State struct {
	ID      string           // of the sentinel
	Index   uint64           // Consul's index of the prefix
	Entries map[string]Entry // by key below the prefix, e.g. "web/web-01"; without the sentinel and folders

	sentinel uint64 // its ModifyIndex
}

// An Entry is the value of a key as somebody wrote it.
type Entry struct {
	Value       string
	ModifyIndex uint64 // Consul's index of its last change
}

// Read reads all states at once, consistently. An answer that cannot be
// believed is a [*ReadError], and so is one without the sentinel.
func (s *Store) Read(ctx context.Context) (*State, error) {
	answer, err := s.list(ctx, 0)
	if err != nil {
		return nil, classify(err, s.address)
	}
	id, bad := guard{root: s.root, address: s.address}.check(answer, "")
	if bad != nil {
		return nil, bad
	}
	state := &State{ID: id, Index: answer.Meta.LastIndex, Entries: make(map[string]Entry, len(answer.Pairs))}
	for _, pair := range answer.Pairs {
		if pair.Key == SentinelKey(s.root) {
			state.sentinel = pair.ModifyIndex
			continue
		}
		if key := strings.TrimPrefix(pair.Key, StatePrefix(s.root)); key != "" && !strings.HasSuffix(key, "/") {
			state.Entries[key] = Entry{Value: string(pair.Value), ModifyIndex: pair.ModifyIndex}
		}
	}
	return state, nil
}

// A Change is what is to become of one key.
type Change struct {
	Key    string // below the state prefix
	Value  string // as [hadrain/internal/desired.ParseValue] reads it; ignored if Delete or Keep
	Delete bool
	Keep   bool // nothing is written, but the key must be as it was read
}

// An Author says who changes something, and why, for the journal.
type Author struct {
	By     string
	Reason string
	At     time.Time
}

// A ConflictError says that something changed between [Store.Read] and a
// write. Nothing was written.
type ConflictError struct {
	Keys []string // full keys that are not as they were read
}

// Error names the keys.
func (e *ConflictError) Error() string {
	return "changed meanwhile by somebody else: " + strings.Join(e.Keys, ", ") + "; nothing was written; look at hadrain status, then try again"
}

// A LimitError says that more was to be changed than fits into a transaction.
// Nothing was written.
type LimitError struct {
	Changes int // wanted
	Most    int // that fit
}

// Error says what to do instead.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%d keys at once: at most %d fit into one transaction of Consul, and half a change is none; "+
		"nothing was written; use a group key, or name fewer", e.Changes, e.Most)
}

// A WriteError says that a write failed for another reason.
type WriteError struct {
	Maybe   bool   // no answer came: it may have been applied all the same
	Message string // what happened and what to do
	Err     error  // the cause, or nil
}

// Error returns the message.
func (e *WriteError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }
