package dev

import (
	"context"
	"fmt"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
)

// writeGrace is how long one write of the demonstration may take.
const writeGrace = 10 * time.Second

// author is who the demonstration says it is, in notes and in the journal.
const author = "hadrain-dev"

// init marks the prefix as meant, as `hadrain init` does.
func (r *runner) init(ctx context.Context) error {
	s, err := kv.NewStore(r.store.config(), r.root)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeGrace)
	defer cancel()
	if _, err := s.Init(ctx, "", false); err != nil {
		return fmt.Errorf("marking %s/ in %s as meant: %w", r.root, r.store.what(), err)
	}
	r.kv = s
	return nil
}

// write sets a key as the verbs of the CLI do: one transaction with the
// sentinel, the value and the journal.
func (r *runner) write(ctx context.Context, key string, state desired.State, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, writeGrace)
	defer cancel()
	from, err := r.kv.Read(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	value := desired.Value{State: state, Note: desired.Note{By: author, At: now, Reason: reason}.String()}
	_, err = r.kv.Apply(ctx, from, []kv.Change{{Key: key, Value: value.String()}}, kv.Author{By: author, Reason: reason, At: now})
	return err
}
