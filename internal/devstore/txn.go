package devstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxOps is the largest number of operations in a transaction.
const maxOps = 128

// A txnOp is one operation as a client sends it. Only those on keys are served;
// the others are here so that they can be told from unknown fields.
type txnOp struct {
	KV      *kvOp
	Node    *json.RawMessage
	Service *json.RawMessage
	Check   *json.RawMessage
}

type kvOp struct {
	Verb      string
	Key       string
	Value     []byte // base64 in JSON
	Flags     uint64
	Index     uint64
	Session   string
	Namespace string // ignored, as the community edition does
	Partition string
}

// A txnResult is the key that an operation read or wrote, its value left out
// unless it was to be read.
type txnResult struct{ KV *entry }

type txnError struct {
	OpIndex int
	What    string
}

// A txnReply answers a transaction: results, or the errors that kept all of it
// from happening, with status 409.
type txnReply struct {
	Results []txnResult
	Errors  []txnError
}

// A txnReadReply answers a transaction that only reads. Consul adds the fields
// of its internal answer; without a leader in it when the transaction did not
// even run.
type txnReadReply struct {
	txnReply
	Index                 uint64
	LastContact           int64
	KnownLeader           bool
	ConsistencyLevel      string
	NotModified           bool
	Backend               int
	ResultsFilteredByACLs bool
}

// errRefused undoes a transaction whose errors are in the reply.
var errRefused = errors.New("transaction refused")

func (s *Store) serveTxn(w http.ResponseWriter, r *http.Request) error {
	ops, err := readOps(w, r)
	if err != nil {
		return err
	}
	writes := false
	for _, op := range ops {
		writes = writes || verbs[op.Verb].writes
	}
	if writes {
		return s.writeTxn(w, r, ops)
	}
	if _, err := parseOptions(r); err != nil {
		return err
	}
	return s.readTxn(w, r, ops)
}

// readOps decodes the operations on keys; empty ones are skipped.
func readOps(w http.ResponseWriter, r *http.Request) ([]*kvOp, error) {
	const see = "See https://www.consul.io/docs/agent/config/config-files#txn_max_req_len."
	if r.ContentLength > maxValue {
		return nil, tooLarge("Request body(%d bytes) too large, max size: %d bytes. %s", r.ContentLength, maxValue, see)
	}
	sent, err := decodeOps(http.MaxBytesReader(w, r.Body, maxValue))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge("Request body too large, max size: %d bytes. %s", maxValue, see)
	}
	if err != nil {
		return nil, badRequest("Failed to parse body: %v", err)
	}
	if len(sent) > maxOps {
		return nil, tooLarge("Transaction contains too many operations (%d > %d)", len(sent), maxOps)
	}
	var ops []*kvOp
	for i, op := range sent {
		switch {
		case op.KV != nil:
			ops = append(ops, op.KV)
		case op.Node != nil, op.Service != nil, op.Check != nil:
			return nil, badRequest("operation %d: %s has only operations on keys (KV)", i, NodeName)
		}
	}
	return ops, nil
}

// decodeOps reads one JSON value and refuses fields it does not know; what
// follows the value is ignored.
func decodeOps(body io.Reader) ([]txnOp, error) {
	var ops []txnOp
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&ops); err != nil {
		return nil, err
	}
	return ops, nil
}

func (s *Store) writeTxn(w http.ResponseWriter, r *http.Request, ops []*kvOp) error {
	var out txnReply
	err := s.apply(func(d *draft) error {
		if out.Errors = d.refuse(ops); len(out.Errors) == 0 {
			out = d.run(ops)
		}
		if len(out.Errors) > 0 {
			return errRefused
		}
		return nil
	})
	if errors.Is(err, errRefused) {
		return reply(w, r, http.StatusConflict, out)
	}
	if err != nil {
		return err
	}
	return reply(w, r, http.StatusOK, out)
}

// readTxn runs operations that do not write, on a draft that nobody else sees.
func (s *Store) readTxn(w http.ResponseWriter, r *http.Request, ops []*kvOp) error {
	if s.done.Err() != nil {
		return errNoLeader
	}
	d := newDraft(s.cur.Load(), 0)
	out := txnReadReply{txnReply: txnReply{Errors: d.refuse(ops)}}
	status := http.StatusConflict
	if len(out.Errors) == 0 {
		out.txnReply = d.run(ops)
		out.Index, out.KnownLeader = 1, true
	}
	if len(out.Errors) == 0 {
		status = http.StatusOK
	}
	setLeader(w, out.KnownLeader)
	return reply(w, r, status, out)
}

// refuse returns what is wrong with operations before any of them runs.
func (d *draft) refuse(ops []*kvOp) []txnError {
	var errs []txnError
	for i, op := range ops {
		switch {
		case op.Key == "" && op.Verb != "delete-tree":
			errs = append(errs, txnError{i, "Must provide key"})
		case op.Verb == "lock" && d.delayed(op.Key):
			errs = append(errs, txnError{i, fmt.Sprintf("failed to lock key %q due to lock delay", op.Key)})
		}
	}
	return errs
}

// run runs all operations. It goes on after a failed one: a client learns
// everything that is wrong at once.
func (d *draft) run(ops []*kvOp) txnReply {
	var out txnReply
	out.Results = []txnResult{}
	for i, op := range ops {
		results, err := d.one(op)
		if err != nil {
			out.Errors = append(out.Errors, txnError{i, err.Error()})
		}
		for _, e := range results {
			out.Results = append(out.Results, txnResult{e})
		}
	}
	if len(out.Errors) > 0 {
		out.Results = nil
	}
	return out
}

func (d *draft) one(op *kvOp) ([]*entry, error) {
	v, ok := verbs[op.Verb]
	if !ok {
		return nil, fmt.Errorf("unknown KV verb %q", op.Verb)
	}
	results, err := v.run(d, op)
	if err != nil {
		return nil, err
	}
	if v.values {
		return results, nil
	}
	for i, e := range results {
		bare := *e
		bare.Value = nil
		results[i] = &bare
	}
	return results, nil
}
