package tests_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// newRenderStack is a stack of Consul and render alone; render is not started.
func newRenderStack(t *testing.T, cfg testpeer.ConsulConfig) *stack {
	t.Helper()
	s := &stack{t: t, root: "hadrain", dir: testpeer.Dir(t)}
	s.consul = testpeer.Consul(t, cfg)
	s.kv = s.consul.Client(t).KV()
	return s
}

// run starts render with more variables and without waiting for anything.
func (s *stack) run(env []string, flags ...string) *testpeer.Process {
	s.t.Helper()
	cmd := s.renderCommand(flags...)
	cmd.Env = append(cmd.Env, env...)
	return testpeer.Start(s.t, cmd)
}

// wantRows waits until the file has these rows ("key state"), in its order.
func (s *stack) wantRows(p *testpeer.Process, rows ...string) {
	s.t.Helper()
	want := strings.Join(rows, "; ")
	testpeer.WaitFor(s.t, "the state "+want, func() (bool, string) {
		f, _, err := statefile.Load(s.statePath())
		if err != nil {
			return false, err.Error() + "\n" + p.Output()
		}
		got := make([]string, len(f.Rows))
		for i, row := range f.Rows {
			got[i] = row.Key + " " + row.State.String()
		}
		return strings.Join(got, "; ") == want, strings.Join(got, "; ") + "\n" + p.Output()
	})
}

// refused runs render, which must exit with status 1, say every text, and leave
// no file.
func (s *stack) refused(env []string, texts ...string) {
	s.t.Helper()
	p := s.run(env, "--start-timeout", "300ms")
	if code := p.WaitExit(s.t); code != 1 {
		s.t.Errorf("render with %q: exit status %d, want 1", env, code)
	}
	for _, text := range texts {
		if !strings.Contains(p.Output(), text) {
			s.t.Errorf("render with %q does not say %q:\n%s", env, text, p.Output())
		}
	}
	if _, err := os.Stat(s.statePath()); err == nil {
		s.t.Fatalf("render with %q wrote a state", env)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fill writes drained servers in transactions.
func (s *stack) fill(keys int) {
	s.t.Helper()
	txn := s.consul.Client(s.t).Txn()
	for at := 0; at < keys; {
		var ops consulapi.TxnOps
		for ; at < keys && len(ops) < 128; at++ {
			ops = append(ops, &consulapi.TxnOp{KV: &consulapi.KVTxnOp{
				Verb: consulapi.KVSet, Key: fmt.Sprintf("%s/state/web/server-%06d", s.root, at), Value: []byte("drain"),
			}})
		}
		if ok, answer, _, err := txn.Txn(ops, nil); err != nil || !ok {
			s.t.Fatalf("filling: %v, %+v", err, answer)
		}
	}
}

func (s *stack) kvPut(key, value string) {
	s.t.Helper()
	if _, err := s.kv.Put(&consulapi.KVPair{Key: key, Value: []byte(value)}, nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stack) wantKeys(p *testpeer.Process, keys int) {
	s.t.Helper()
	testpeer.WaitFor(s.t, fmt.Sprintf("a state of %d keys", keys), func() (bool, string) {
		f, _, err := statefile.Load(s.statePath())
		return err == nil && len(f.Rows) == keys, p.Output()
	})
}
