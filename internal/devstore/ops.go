package devstore

import (
	"errors"
	"fmt"
	"slices"
)

// The functions of this file are the commands on keys, as Consul's state store
// has them (agent/consul/state/kvs.go). Each edits a draft.

// put stores e under its key and returns what the key holds then: e with its
// indexes set, or the old entry's index when nothing is different, which is no
// change at all. A plain write (keepSession) leaves the lock's holder alone;
// it does take the LockIndex of e, which is 0, and so does Consul.
func (d *draft) put(e entry, keepSession bool) *entry {
	i, old := d.find(e.Key)
	e.CreateIndex = d.index
	if len(e.Value) == 0 {
		e.Value = nil // null in JSON, as the raft log makes it
	}
	if keepSession {
		e.Session = ""
	}
	if old != nil {
		e.CreateIndex = old.CreateIndex
		if keepSession {
			e.Session = old.Session
		}
		if e.same(old) {
			e.ModifyIndex = old.ModifyIndex
			return &e
		}
	}
	e.ModifyIndex = d.index
	if old != nil {
		d.entries[i] = &e
	} else {
		d.entries = slices.Insert(d.entries, i, &e)
	}
	d.touchKV()
	return &e
}

// cas stores e if its key is still at e.ModifyIndex; 0 means that it must not
// exist.
func (d *draft) cas(e entry) (*entry, bool) {
	var at uint64
	if _, old := d.find(e.Key); old != nil {
		at = old.ModifyIndex
	}
	if e.ModifyIndex != at {
		return nil, false
	}
	return d.put(e, true), true
}

// lock stores e with e.Session as the holder of the key's lock, unless another
// session holds it.
func (d *draft) lock(e entry) (*entry, bool, error) {
	if e.Session == "" {
		return nil, false, errors.New("missing session")
	}
	if d.session(e.Session) == nil {
		return nil, false, fmt.Errorf("invalid session %#v", e.Session)
	}
	e.LockIndex = 1
	if _, old := d.find(e.Key); old != nil {
		switch old.Session {
		case e.Session:
			e.LockIndex = old.LockIndex
		case "":
			e.LockIndex = old.LockIndex + 1
		default:
			return nil, false, nil
		}
	}
	return d.put(e, false), true, nil
}

// unlock stores e without a holder, if e.Session holds the key's lock.
func (d *draft) unlock(e entry) (*entry, bool, error) {
	if e.Session == "" {
		return nil, false, errors.New("missing session")
	}
	_, old := d.find(e.Key)
	if old == nil || old.Session != e.Session {
		return nil, false, nil
	}
	e.Session, e.LockIndex = "", old.LockIndex
	return d.put(e, false), true, nil
}

func (d *draft) remove(key string) {
	i, old := d.find(key)
	if old == nil {
		return
	}
	d.entries = slices.Delete(d.entries, i, i+1)
	d.bury(key)
	d.touchKV()
}

// removeCAS removes a key that is at the given index. A missing key counts as
// removed.
func (d *draft) removeCAS(key string, index uint64) bool {
	_, old := d.find(key)
	if old == nil {
		return true
	}
	if old.ModifyIndex != index {
		return false
	}
	d.remove(key)
	return true
}

// removeTree removes every key below a prefix and leaves one tombstone, for the
// prefix.
func (d *draft) removeTree(prefix string) {
	from, to := d.span(prefix)
	if from == to {
		return
	}
	d.entries = slices.Delete(d.entries, from, to)
	if prefix != "" {
		d.bury(prefix)
	}
	d.touchKV()
}
