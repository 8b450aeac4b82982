package tests_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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

const master = "11111111-0000-4000-8000-000000000001"

func aclConsul(t *testing.T) *stack {
	return newRenderStack(t, testpeer.ConsulConfig{Token: master, HCL: fmt.Sprintf(
		"acl { enabled = true\n default_policy = \"deny\"\n tokens { initial_management = %q } }", master)})
}

// policy makes rules the policy called name.
func (s *stack) policy(name, rules string) {
	s.t.Helper()
	acl := s.consul.Client(s.t).ACL()
	list, _, err := acl.PolicyList(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	policy := &consulapi.ACLPolicy{Name: name, Rules: rules}
	for _, old := range list {
		if old.Name == name {
			policy.ID = old.ID
		}
	}
	if policy.ID == "" {
		_, _, err = acl.PolicyCreate(policy, nil)
	} else {
		_, _, err = acl.PolicyUpdate(policy, nil)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// token makes a token with the policy called name.
func (s *stack) token(name string) *consulapi.ACLToken {
	s.t.Helper()
	token, _, err := s.consul.Client(s.t).ACL().TokenCreate(&consulapi.ACLToken{Policies: []*consulapi.ACLLink{{Name: name}}}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

const (
	readAll  = `key_prefix "hadrain/state/" { policy = "read" }`
	readPart = readAll + "\n" + `key_prefix "hadrain/state/web/" { policy = "deny" }`
	readNone = `node_prefix "" { policy = "read" }`
)

// Consul answers a list that a token may not read with 404, or with a part of
// it and status 200. Neither is a state.
func TestRenderRefusesWhatItMayNotRead(t *testing.T) {
	s := aclConsul(t)
	s.put(".hadrain", "v1 id="+sentinelID)
	s.put("web/a", "drain")
	s.policy("none", readNone)
	s.policy("part", readPart)
	tokenFile := filepath.Join(s.dir, "token")
	write(t, tokenFile, "\n")
	s.refused([]string{"CONSUL_HTTP_TOKEN=" + s.token("none").SecretID}, "acl_filtered", "key_prefix")
	s.refused([]string{"CONSUL_HTTP_TOKEN=" + s.token("part").SecretID}, "acl_filtered", "key_prefix")
	s.refused(nil, "acl_anonymous", "--token-file")
	s.refused([]string{"CONSUL_HTTP_TOKEN_FILE=" + tokenFile}, "token", tokenFile, "empty")
	s.refused([]string{"CONSUL_HTTP_TOKEN=22222222-0000-4000-8000-000000000002"}, "http_403", "unknown, deleted or expired")
	s.refused([]string{"CONSUL_HTTP_TOKEN=" + master, "CONSUL_NAMESPACE=team"}, "http_400", "Consul Enterprise")
}

func TestRenderSurvivesChangesOfItsToken(t *testing.T) {
	s := aclConsul(t)
	s.put(".hadrain", "v1 id="+sentinelID)
	s.put("web/a", "drain")
	s.policy("read", readAll)
	first := s.token("read")
	tokenFile := filepath.Join(s.dir, "token")
	write(t, tokenFile, first.SecretID)
	p := s.run([]string{"VAULT_TOKEN=x", "HTTP_PROXY=http://127.0.0.1:9"}, "--token-file", tokenFile)
	s.wantRows(p, "web/a drain")

	// Rotated: the next request uses the new one, and nothing fails.
	write(t, tokenFile, s.token("read").SecretID)
	s.put("web/a", "maint") // wakes the read that was authorised before
	s.wantRows(p, "web/a maint")
	if _, err := s.consul.Client(t).ACL().TokenDelete(first.AccessorID, nil); err != nil {
		t.Fatal(err)
	}
	s.put("web/a", "50%")
	s.wantRows(p, "web/a 50%")
	if strings.Contains(p.Output(), "level=ERROR") {
		t.Errorf("the rotation led to an error:\n%s", p.Output())
	}

	// Stripped, and restored at the same index: no write in between.
	s.policy("read", readNone)
	s.put("web/a", "drain") // may still be answered by the read in flight
	p.WaitOutput(t, "reason=acl_filtered")
	s.policy("read", readAll)
	p.WaitOutput(t, "accepted again")
	s.wantRows(p, "web/a drain")
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit status %d after SIGTERM, want 0", code)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A Consul in development mode forgets everything when it restarts, and its
// index starts over.
func TestRenderKeepsTheFileWhenConsulLosesItsData(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	for range 50 {
		s.put("web/a", "ready")
		s.put("web/a", "drain") // moves the index
	}
	s.put(".hadrain", "v1 id="+sentinelID)
	p := s.run(nil)
	s.wantRows(p, "web/a drain")
	s.consul.Stop(t)
	p.WaitOutput(t, "reason=transport")
	s.consul.Start(t)
	p.WaitOutput(t, "reason=no_sentinel")
	s.wantRows(p, "web/a drain")
	s.put(".hadrain", "v1 id=00000000-0000-4000-8000-000000000002")
	p.WaitOutput(t, "reason=wrong_sentinel")
	s.wantRows(p, "web/a drain")
	s.put("web/b", "maint")
	s.put(".hadrain", "v1 id="+sentinelID)
	s.wantRows(p, "web/b maint")
}

// An agent that hangs takes connections and answers nothing.
func TestRenderRecoversFromAHungAgent(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.put(".hadrain", "v1 id="+sentinelID)
	s.put("web/a", "drain")
	p := s.run(nil)
	s.wantRows(p, "web/a drain")
	s.consul.Pause(t)
	t.Setenv("HADRAIN_TEST_TIMEOUT", "40s") // a held read may take 20.6 s
	p.WaitOutput(t, "reason=timeout")
	s.consul.Resume()
	s.put("web/a", "ready")
	s.wantRows(p, "web/a ready")
}

// A leader that replays its log answers other reads than consistent ones with
// part of the keys. The sentinel comes first, so that a part has it too; several
// renders are there, since the time of the replay is short.
func TestRenderNeverPublishesAPart(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{Persistent: true})
	const keys = 20_000
	s.put(".hadrain", "v1 id="+sentinelID)
	s.fill(keys)
	s.consul.Kill(t)
	var paths []string
	var renders []*testpeer.Process
	for i := range 8 {
		paths = append(paths, filepath.Join(s.dir, fmt.Sprintf("state-%d", i)))
		renders = append(renders, s.run(nil, "--start-timeout", "1m", "--state", paths[i]))
	}
	s.consul.Start(t)
	for i, path := range paths {
		testpeer.WaitFor(t, "a state", func() (bool, string) {
			f, _, err := statefile.Load(path)
			if err != nil {
				return false, err.Error() + renders[i].Output()
			}
			return len(f.Rows) == keys, fmt.Sprintf("%d keys", len(f.Rows))
		})
		if first := "msg=\"in sync\" keys=20000 "; !strings.Contains(renders[i].Output(), first) {
			t.Errorf("a part was published:\n%s", renders[i].Output())
		}
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

func TestRenderFollowsASnapshotRestore(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.put(".hadrain", "v1 id="+sentinelID)
	s.put("web/a", "drain")
	p := s.run(nil)
	s.wantRows(p, "web/a drain")
	snapshot, _, err := s.consul.Client(t).Snapshot().Save(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = snapshot.Close() }()
	s.put("web/a", "maint")
	s.put("web/b", "maint")
	s.wantRows(p, "web/a maint", "web/b maint")
	if err := s.consul.Client(t).Snapshot().Restore(nil, snapshot); err != nil {
		t.Fatal(err)
	}
	s.wantRows(p, "web/a drain")
}

func TestRenderTakesABurst(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.put(".hadrain", "v1 id="+sentinelID)
	l := listen(t)
	addr := l.Addr().String()
	_ = l.Close() // render binds it in a moment
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
	writes := metric(t, "http://"+addr+"/metrics", "hadrain_render_file_writes_total")
	if most := 4 + took.Seconds()/0.2; writes > most {
		t.Errorf("%v file writes for 1000 puts in %v, want at most %.0f", writes, took, most)
	}
}

// Keys that only a transaction can write, and values at Consul's limit.
func TestRenderTakesStrangeKeysAndValues(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.put(".hadrain", "v1 id="+sentinelID)
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

func (s *stack) kvPut(key, value string) {
	s.t.Helper()
	if _, err := s.kv.Put(&consulapi.KVPair{Key: key, Value: []byte(value)}, nil); err != nil {
		s.t.Fatal(err)
	}
}

// Whenever render is killed, the file is whole, and the next one starts.
func TestRenderKilledAtAnyMoment(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.put(".hadrain", "v1 id="+sentinelID)
	s.fill(200)
	start := func() *testpeer.Process {
		cmd := s.renderCommand("--quiet", "10ms")
		// With the race detector it would be killed before it wrote anything.
		cmd.Path = testpeer.BuildPlain(t, "hadrain-render")
		return testpeer.Start(t, cmd)
	}
	p := start()
	s.wantKeys(p, 200)
	writing, index := 0, uint64(0)
	for i := range 200 {
		delay := time.NewTimer(time.Duration(rand.IntN(60)) * time.Millisecond)
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
	if writing < 20 { // about 130 on a quiet machine
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

func (s *stack) wantKeys(p *testpeer.Process, keys int) {
	s.t.Helper()
	testpeer.WaitFor(s.t, fmt.Sprintf("a state of %d keys", keys), func() (bool, string) {
		f, _, err := statefile.Load(s.statePath())
		return err == nil && len(f.Rows) == keys, p.Output()
	})
}

func TestRenderLockAndUsage(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.put(".hadrain", "v1 id="+sentinelID)
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

// metric returns the value of one metric without labels.
func metric(t *testing.T, url, name string) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut("\n"+string(body), "\n"+name+" ")
	if !ok {
		t.Fatalf("%s has no %s", url, name)
	}
	text, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
