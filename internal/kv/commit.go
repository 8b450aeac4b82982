package kv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	consulapi "github.com/hashicorp/consul/api"
)

// commit runs a transaction.
func (s *Store) commit(ctx context.Context, ops consulapi.TxnOps) (index uint64, err error) {
	ok, resp, _, err := s.client.Txn().Txn(ops, (&consulapi.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return 0, s.writeError(err)
	}
	if !ok {
		return 0, s.refused(ops, resp.Errors)
	}
	for _, result := range resp.Results {
		if result.KV != nil {
			index = max(index, result.KV.ModifyIndex)
		}
	}
	return index, nil
}

// refused turns the errors of a transaction that was not made into one.
func (s *Store) refused(ops consulapi.TxnOps, errs consulapi.TxnErrors) error {
	var conflict ConflictError
	for _, e := range errs {
		if strings.Contains(e.What, "ermission denied") {
			return &WriteError{Message: fmt.Sprintf("Consul at %s refuses the write: %s; the token needs %s; nothing was written",
				s.address, e.What, s.right(ops, e.OpIndex))}
		}
		if e.OpIndex < 0 || e.OpIndex >= len(ops) || !stale(ops[e.OpIndex].KV.Verb) {
			return &WriteError{Message: fmt.Sprintf("Consul at %s refuses the write: %s; nothing was written", s.address, e.What)}
		}
		if key := ops[e.OpIndex].KV.Key; !slices.Contains(conflict.Keys, key) {
			conflict.Keys = append(conflict.Keys, key)
		}
	}
	if len(conflict.Keys) == 0 {
		return &WriteError{Message: "Consul at " + s.address + " refuses the write without a reason; nothing was written"}
	}
	return &conflict
}

// right is the rule of a policy that a token lacks for an operation.
func (s *Store) right(ops consulapi.TxnOps, at int) string {
	rule, name := "key_prefix", StatePrefix(s.root)
	if at >= 0 && at < len(ops) {
		switch key := ops[at].KV.Key; {
		case strings.HasPrefix(key, JournalPrefix(s.root)):
			name = JournalPrefix(s.root)
		case key == SentinelKey(s.root):
			rule, name = "key", key
		}
	}
	return fmt.Sprintf("%s %q { policy = \"write\" }", rule, name)
}

// stale reports whether an operation that failed did so because its key is not
// what it was.
func stale(verb consulapi.KVOp) bool {
	return verb == consulapi.KVCAS || verb == consulapi.KVCheckIndex || verb == consulapi.KVCheckNotExists
}

// writeError says of a request that failed what became of the write. What was
// not answered may have been applied.
func (s *Store) writeError(err error) error {
	e := &WriteError{Err: err}
	// The library keeps no status of transactions, only the text.
	if body, ok := strings.CutPrefix(err.Error(), "Failed request: "); ok {
		e.Message = fmt.Sprintf("writing: Consul at %s answered %.200q", s.address, body)
		e.Maybe = !slices.ContainsFunc(refusals, func(text string) bool { return strings.Contains(body, text) })
	} else {
		read := classify(err, s.address)
		e.Message = "writing: " + read.Message
		e.Maybe = read.Reason != NoToken && !neverSent(err)
	}
	if e.Maybe {
		e.Message += "; it may have been applied all the same: look at hadrain status"
	} else {
		e.Message += "; nothing was written"
	}
	return e
}

// refusals are in answers to transactions that were certainly not made.
var refusals = []string{
	"ACL not found", "ermission denied", "too large", "too many operations", "No cluster leader", "Enterprise feature",
}

// neverSent reports whether a request failed before anything of it left.
func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	return dns || ok && op.Op == "dial"
}
