package devstore

import "fmt"

// A verb is what an operation of a transaction can do to a key.
type verb struct {
	writes bool // a transaction with such an operation is a command
	values bool // its results carry values
	run    func(*draft, *kvOp) ([]*entry, error)
}

var verbs = map[string]verb{
	"set": {writes: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		return []*entry{d.put(op.entry(), true)}, nil
	}},
	"cas": {writes: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		e, ok := d.cas(op.entry())
		return one(e, ok, nil, "failed to set key %q, index is stale", op.Key)
	}},
	"lock": {writes: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		e, ok, err := d.lock(op.entry())
		return one(e, ok, err, "failed to lock key %q, lock is already held", op.Key)
	}},
	"unlock": {writes: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		e, ok, err := d.unlock(op.entry())
		return one(e, ok, err, "failed to unlock key %q, lock isn't held, or is held by another session", op.Key)
	}},
	"delete": {writes: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		d.remove(op.Key)
		return nil, nil
	}},
	"delete-tree": {writes: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		d.removeTree(op.Key)
		return nil, nil
	}},
	"delete-cas": {writes: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		if !d.removeCAS(op.Key, op.Index) {
			return nil, fmt.Errorf("failed to delete key %q, index is stale", op.Key)
		}
		return nil, nil
	}},
	"get": {values: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		_, e := d.find(op.Key)
		return one(e, e != nil, nil, "key %q doesn't exist", op.Key)
	}},
	"get-or-empty": {values: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		if _, e := d.find(op.Key); e != nil {
			return []*entry{e}, nil
		}
		e := op.entry()
		e.Value = nil
		return []*entry{&e}, nil
	}},
	"get-tree": {values: true, run: func(d *draft, op *kvOp) ([]*entry, error) {
		_, entries := d.list(op.Key)
		return entries, nil
	}},
	"check-index":      {run: checkIndex},
	"check-session":    {run: checkSession},
	"check-not-exists": {run: checkNotExists},
}

func (op *kvOp) entry() entry {
	return entry{Key: op.Key, Value: op.Value, Flags: op.Flags, Session: op.Session, ModifyIndex: op.Index}
}

// one is the result of an operation on one key, or the error that it was refused.
func one(e *entry, ok bool, err error, refusal, key string) ([]*entry, error) {
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf(refusal, key)
	}
	return []*entry{e}, nil
}

func checkIndex(d *draft, op *kvOp) ([]*entry, error) {
	_, e := d.find(op.Key)
	if e == nil {
		return nil, fmt.Errorf("failed to check index, key %q doesn't exist", op.Key)
	}
	if e.ModifyIndex != op.Index {
		return nil, fmt.Errorf("failed index check for key %q, current modify index %d != %d",
			op.Key, e.ModifyIndex, op.Index)
	}
	return []*entry{e}, nil
}

func checkSession(d *draft, op *kvOp) ([]*entry, error) {
	_, e := d.find(op.Key)
	if e == nil {
		return nil, fmt.Errorf("failed to check session, key %q doesn't exist", op.Key)
	}
	if e.Session != op.Session {
		return nil, fmt.Errorf("failed session check for key %q, current session %q != %q",
			op.Key, e.Session, op.Session)
	}
	return []*entry{e}, nil
}

func checkNotExists(d *draft, op *kvOp) ([]*entry, error) {
	if _, e := d.find(op.Key); e != nil {
		return nil, fmt.Errorf("key %q exists", op.Key)
	}
	return nil, nil
}
