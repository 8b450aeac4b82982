package kv

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/desired"
)

// maxOps is how many operations Consul takes in a transaction.
const maxOps = 128

// JournalPrefix returns the prefix of the records of changes.
func JournalPrefix(root string) string { return root + "/journal/" }

// A Record is one change of one key in the journal, as JSON.
type Record struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Key    string    `json:"key"`  // below the state prefix
	From   *string   `json:"from"` // the value before, cut if it is longer than any that we write; null: there was none
	To     *string   `json:"to"`   // the value after; null: deleted
}

// Apply makes all changes, or none, in one transaction. It is refused with a
// [*ConflictError] if the sentinel or any of the keys is not as in from any
// more. A key that is to be deleted and is not there needs no change: naming
// one is an error. The result is Consul's index of the write.
func (s *Store) Apply(ctx context.Context, from *State, changes []Change, author Author) (index uint64, err error) {
	if len(changes) == 0 {
		return from.Index, nil
	}
	ops, err := s.operations(from, changes, author)
	if err != nil {
		return 0, err
	}
	return s.commit(ctx, ops)
}

// Check returns the error that [Store.Apply] would return without asking Consul,
// so that a preview can show it.
func (s *Store) Check(from *State, changes []Change, author Author) error {
	_, err := s.operations(from, changes, author)
	return err
}

// operations makes the transaction for at least one change.
func (s *Store) operations(from *State, changes []Change, author Author) (consulapi.TxnOps, error) {
	t := transaction{root: s.root, from: from, author: author, stamp: stamp(author.At)}
	t.add(SentinelKey(s.root), consulapi.KVTxnOp{Verb: consulapi.KVCheckIndex, Index: from.sentinel})
	for _, c := range changes {
		if err := t.change(c); err != nil {
			return nil, err
		}
	}
	if len(t.ops) > maxOps {
		// The journal takes one operation a key, and so does the key itself, or
		// two if it is deleted.
		perKey := (len(t.ops) - 1 + len(changes) - 1) / len(changes)
		return nil, &LimitError{Changes: len(changes), Most: (maxOps - 1) / perKey}
	}
	return t.ops, nil
}

// transaction collects the operations of one write.
type transaction struct {
	root   string
	from   *State
	author Author
	stamp  string
	ops    consulapi.TxnOps
}

func (t *transaction) add(key string, op consulapi.KVTxnOp) {
	op.Key = key
	t.ops = append(t.ops, &consulapi.TxnOp{KV: &op})
}

func (t *transaction) change(c Change) error {
	if err := checkChange(c); err != nil {
		return err
	}
	key := StatePrefix(t.root) + c.Key
	entry, exists := t.from.Entries[c.Key]
	if c.Keep {
		t.keep(key, entry, exists)
		return nil
	}
	record := Record{At: t.author.At.UTC(), By: t.author.By, Reason: t.author.Reason, Key: c.Key}
	if exists {
		value := brief(entry.Value)
		record.From = &value
	}
	switch {
	case c.Delete && !exists:
		return fmt.Errorf("deleting %s: it has no value", key)
	case c.Delete:
		// Consul takes delete-cas of a key that is gone for done; this does not.
		t.add(key, consulapi.KVTxnOp{Verb: consulapi.KVCheckIndex, Index: entry.ModifyIndex})
		t.add(key, consulapi.KVTxnOp{Verb: consulapi.KVDelete})
	default:
		// Index 0, of a key that does not exist, means: create only.
		t.add(key, consulapi.KVTxnOp{Verb: consulapi.KVCAS, Index: entry.ModifyIndex, Value: []byte(c.Value)})
		record.To = &c.Value
	}
	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding the journal's record of %s: %w", key, err)
	}
	name := fmt.Sprintf("%s%s.%03d", JournalPrefix(t.root), t.stamp, len(t.ops))
	t.add(name, consulapi.KVTxnOp{Verb: consulapi.KVSet, Value: value})
	return nil
}

// maxFrom is more than any value of the CLI takes, in bytes.
const maxFrom = 2048

// brief returns a value as the journal keeps it. What somebody else wrote may be
// as long as Consul takes; whole, it would not fit into the transaction that
// replaces or deletes it.
func brief(value string) string {
	if len(value) <= maxFrom {
		return value
	}
	return fmt.Sprintf("%s (%d bytes)", desired.Printable(value), len(value))
}

// keep compares a key without changing it.
func (t *transaction) keep(key string, entry Entry, exists bool) {
	op := consulapi.KVTxnOp{Verb: consulapi.KVCheckNotExists}
	if exists {
		op = consulapi.KVTxnOp{Verb: consulapi.KVCheckIndex, Index: entry.ModifyIndex}
	}
	t.add(key, op)
}

func checkChange(c Change) error {
	if err := desired.CheckKey(c.Key); err != nil {
		return fmt.Errorf("key %q: %w", c.Key, err)
	}
	if c.Key == SentinelName {
		return fmt.Errorf("key %q is the sentinel: only hadrain init writes it", c.Key)
	}
	if c.Delete || c.Keep {
		return nil
	}
	if _, err := desired.ParseValue(c.Value); err != nil {
		return fmt.Errorf("value of key %q: %w", c.Key, err)
	}
	return nil
}

// stamp names a transaction in the journal: its keys sort by time.
func stamp(at time.Time) string {
	return at.UTC().Format("20060102T150405.000000Z") + "-" + randomHex(4)
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
