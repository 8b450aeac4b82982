package render_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/testpeer"
)

func TestKeysBecomeTheFile(t *testing.T) {
	r := newRig(t)
	r.put("canary", `drain # by=alice reason="x"`)
	r.start()
	r.want("canary drain")
	r.put("web/web-07", "50%")
	r.want("canary drain", "web/web-07 50%")
	r.delete("canary")
	r.want("web/web-07 50%")
	if err := r.halt(); err != nil {
		t.Errorf("Run() = %v after a stop, want nil", err)
	}
	r.want("web/web-07 50%")
}

// TestTemplate holds what the template makes against the reference.
func TestTemplate(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("k", 300)
	for key, value := range map[string]string{
		"canary": `drain # by=alice at=2026-09-09T12:00:02Z reason="a \"b\" ü"`, "web/a": "ready", "web/b": "dran",
		"web/c": "50%", "a b": "drain", "é": "drain", long: "drain", "web/": "", "": "", "/slash": "maint",
		"new\nline drain": "ready", "#x": "ready", "n": "ready # rejected as a note\x01",
	} {
		r.txn(key, value)
	}
	r.start()
	r.want("/slash maint", "canary drain", "n ready", "web/a ready", "web/b hold rejected", "web/c 50%")
	data, err := os.ReadFile(r.cfg.State)
	if err != nil {
		t.Fatal(err)
	}
	f, err := statefile.Parse(bytes.Clone(data))
	if err != nil {
		t.Fatal(err)
	}
	if want := statefiletest.Format(f); !bytes.Equal(data, want) {
		t.Errorf("rendered:\n%s\nwant:\n%s", data, want)
	}
	if f.Root != "hadrain" || f.ID != idA || f.Host != "host-1" || len(f.Skipped) != 5 {
		t.Errorf("header %q and %d skipped keys, want root hadrain, id %s, host-1, 5", f.Header(), len(f.Skipped), idA)
	}
}

func TestRejectedValueKeepsTheLastAcrossRestarts(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	r.put("a", "dran")
	r.want("a drain rejected")
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	r.put("b", "up")
	r.start()
	r.want("a drain rejected", "b hold rejected")
	r.put("a", "ready")
	r.put("b", "50%")
	r.want("a ready", "b 50%")
}

// A read that brings nothing new touches the file and does not rewrite it.
func TestUnchangedStateIsNotRewritten(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(r.cfg.State)
	if err != nil {
		t.Fatal(err)
	}
	r.start()
	testpeer.WaitFor(t, "a newer modification time", func() (bool, string) {
		info, err := os.Stat(r.cfg.State)
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(info, before) {
			t.Fatal("the file was rewritten although nothing changed")
		}
		return info.ModTime().After(before.ModTime()), info.ModTime().String()
	})
}

// The index alone makes a new file: who waits for "applied" waits for it. A write
// and its reversal in one transaction leave nothing else to see.
func TestIndexIsNews(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	before, _, err := statefile.Load(r.cfg.State)
	if err != nil {
		t.Fatal(err)
	}
	ops := consulapi.TxnOps{
		{KV: &consulapi.KVTxnOp{Verb: consulapi.KVSet, Key: "hadrain/state/b", Value: []byte("drain")}},
		{KV: &consulapi.KVTxnOp{Verb: consulapi.KVDelete, Key: "hadrain/state/b"}},
	}
	if ok, answer, _, err := r.client.Txn().Txn(ops, nil); err != nil || !ok {
		t.Fatalf("writing and deleting b: %v, %+v", err, answer)
	}
	testpeer.WaitFor(t, "a higher index over the same keys", func() (bool, string) {
		f, _, err := statefile.Load(r.cfg.State)
		if err != nil {
			t.Fatal(err)
		}
		if f.Content() != before.Content() {
			t.Fatalf("the keys changed: %+v", f.Rows)
		}
		return f.Index > before.Index, f.Header()
	})
}

func TestPutBack(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	forged := statefiletest.Format(&statefile.File{Head: statefile.Head{Root: "x"}})
	for i, tc := range []struct {
		says string
		harm func() error
	}{
		{"removed", func() error { return os.Remove(r.cfg.State) }},
		{"changed", func() error { return os.Truncate(r.cfg.State, 20) }},
		{"changed", func() error { return statefile.Write(r.cfg.State, forged) }},
		{"removed", func() error { return os.Rename(r.cfg.State, r.cfg.State+".moved") }},
	} {
		if err := tc.harm(); err != nil {
			t.Fatal(err)
		}
		r.want("a drain")
		testpeer.WaitFor(t, "the message", func() (bool, string) {
			return strings.Count(r.log.String(), "by somebody else: putting it back") == i+1, r.log.String()
		})
		if log := r.log.String(); !strings.Contains(log[strings.LastIndex(log, "the state file was"):], "was "+tc.says) {
			t.Errorf("logged last, want that it was %s:\n%s", tc.says, log)
		}
		if info, err := os.Stat(r.cfg.State); err != nil || info.Mode() != 0o644 {
			t.Errorf("%s and put back: %v, %v, want mode 0644", tc.says, info, err)
		}
	}
}

func TestDirectoryGoneAndBack(t *testing.T) {
	r := newRig(t)
	r.cfg.State = filepath.Join(filepath.Dir(r.cfg.State), "dir", "state")
	if err := os.Mkdir(filepath.Dir(r.cfg.State), 0o755); err != nil {
		t.Fatal(err)
	}
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	// Removing it file by file would race with render, which puts them back.
	if err := os.Rename(filepath.Dir(r.cfg.State), filepath.Dir(r.cfg.State)+".gone"); err != nil {
		t.Fatal(err)
	}
	r.wantLog("the state file is not current")
	if err := os.Mkdir(filepath.Dir(r.cfg.State), 0o755); err != nil {
		t.Fatal(err)
	}
	r.want("a drain")
	r.wantLog("the state file is current again")
	// The lock has moved along.
	if _, err := statefile.Lock(r.cfg.State); !errors.Is(err, statefile.ErrLocked) {
		t.Errorf("Lock() = %v, want ErrLocked", err)
	}
}
