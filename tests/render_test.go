package tests_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

func TestRenderTakesABurst(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	addr := unused(t)
	p := s.run(nil, "--http.listen", addr)
	s.wantRows(p)
	start := time.Now()
	for i := range 1000 {
		s.put(fmt.Sprintf("web/%d", i%10), fmt.Sprintf("%d%%", i/10))
	}
	took := time.Since(start)
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("web/%d 99%%", i))
	}
	s.wantRows(p, want...)
	writes := metric(t, addr, "hadrain_render_file_writes_total")
	if most := 4 + took.Seconds()/0.2; writes > most {
		t.Errorf("%v file writes for 1000 puts in %v, want at most %.0f", writes, took, most)
	}
}

// Keys that only a transaction can write, and values at Consul's limit.
func TestRenderTakesStrangeKeysAndValues(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	big := strings.Repeat("x", 512<<10)
	var ops consulapi.TxnOps
	for key, value := range map[string]string{
		"a\nweb/b  maint": "drain", "tab\tkey": "drain", "nul\x00": "drain", "/dbl": "drain", "dbl": "ready",
		"invalid": "drain # \xff\xfe\n", "binary": "\x00\x01",
	} {
		ops = append(ops, &consulapi.TxnOp{KV: &consulapi.KVTxnOp{Verb: consulapi.KVSet, Key: "hadrain/state/" + key, Value: []byte(value)}})
	}
	if ok, answer, _, err := s.consul.Client(t).Txn().Txn(ops, nil); err != nil || !ok {
		t.Fatalf("writing: %v, %+v", err, answer)
	}
	s.put("big", big)
	s.put("big-note", "maint # "+big[:500<<10])
	s.kvPut("hadrain/statement", "drain") // another prefix
	p := s.run(nil)
	s.wantRows(p, "/dbl drain", "big hold", "big-note maint", "binary hold", "dbl ready", "invalid drain")
	f, _, err := statefile.Load(s.statePath())
	if err != nil || len(f.Skipped) != 3 {
		t.Errorf("%v, skipped %+v, want 3 keys", err, f.Skipped)
	}
}

// Whenever render is killed, the file is whole, and the next one starts.
func TestRenderKilledAtAnyMoment(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	s.fill(200)
	start := func() *testpeer.Process {
		cmd := s.renderCommand("--quiet", "10ms")
		// With the race detector it would be killed before it wrote anything.
		cmd.Path = testpeer.BuildPlain(t, "hadrain-render")
		return testpeer.Start(t, cmd)
	}
	p := start()
	s.wantKeys(p, 200)
	p.Kill(t)
	began := time.Now()
	p = start()
	p.WaitOutput(t, "in sync")
	life := 2 * time.Since(began) // so that about half of them write
	writing, index := 0, uint64(0)
	for i := range 200 {
		delay := time.NewTimer(rand.N(life))
		for running := true; running; {
			s.put("web/server-000000", fmt.Sprintf("%d%%", rand.IntN(101)))
			select {
			case <-delay.C:
				running = false
			default:
			}
		}
		p.Kill(t)
		f, _, err := statefile.Load(s.statePath())
		if err != nil || len(f.Rows) != 200 {
			t.Fatalf("after kill %d: %v", i, err)
		}
		if f.Index != index {
			writing++
		}
		index = f.Index
		p = start()
	}
	if writing < 20 {
		t.Errorf("something was written in only %d of 200 lives, so this test says nothing", writing)
	}
	s.put("web/server-000000", "maint")
	p.WaitOutput(t, "in sync")
	left, err := filepath.Glob(filepath.Join(s.dir, ".state.tmp-*"))
	if err != nil || len(left) > 1 {
		t.Errorf("temporary files %q (%v), want those of earlier runs swept", left, err)
	}
	p.Signal(syscall.SIGINT)
	if code := p.WaitExit(t); code != 0 {
		t.Errorf("exit status %d after SIGINT, want 0", code)
	}
}

func TestRenderLockAndUsage(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	p := s.run(nil)
	s.wantRows(p)
	second := s.run(nil)
	if code := second.WaitExit(t); code != 3 || !strings.Contains(second.Output(), "lock") {
		t.Errorf("a second render: exit status %d, want 3\n%s", code, second.Output())
	}
	for _, flags := range [][]string{{"--kv-root", "a//b"}, {"--quiet", "0s"}, {"--nope"}, {"argument"}, {"--kv-root", ""}} {
		p := s.run(nil, flags...)
		if code := p.WaitExit(t); code != 2 {
			t.Errorf("render %q: exit status %d, want 2\n%s", flags, code, p.Output())
		}
	}
}
