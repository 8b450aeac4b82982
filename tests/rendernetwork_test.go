package tests_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// Packets that vanish leave a connection that looks alive. The state stays, its
// age grows, and when packets arrive again so does the state.
func TestRenderRecoversFromABlackHole(t *testing.T) {
	here, there := newWire(t)
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	s.put("web/a", "drain")
	l := there.listen()
	go forward(l, strings.TrimPrefix(s.consul.Addr(), "unix://")) // ends with l
	cmd := here.inside(s.renderCommand())
	cmd.Env = append(cmd.Env, "CONSUL_HTTP_ADDR=192.0.2.2:8500")
	p := testpeer.Start(t, cmd)
	s.wantRows(p, "web/a drain")

	heal := there.mute()
	s.put("web/a", "maint") // the answer is lost on its way
	t.Setenv("HADRAIN_TEST_TIMEOUT", "40s")
	p.WaitOutput(t, "reason=timeout")
	_, before, err := statefile.Load(s.statePath())
	if err != nil || time.Since(before) < 15*time.Second {
		t.Errorf("the state was read %v ago (%v), want its age to have grown", time.Since(before), err)
	}
	s.wantRows(p, "web/a drain")
	heal()
	start := time.Now()
	s.wantRows(p, "web/a maint")
	if took := time.Since(start); took > 25*time.Second {
		t.Errorf("recovered %v after the packets arrived again, want at most 25 s", took)
	}
}

// A leader that is killed is replaced by another: the state follows, and is
// never less than whole.
func TestRenderFollowsTheNextLeader(t *testing.T) {
	t.Setenv("HADRAIN_TEST_TIMEOUT", "60s")
	servers := testpeer.ConsulCluster(t, 3, testpeer.ConsulConfig{})
	leader, follower := 0, 0
	for i, server := range servers {
		self, err := server.Client(t).Agent().Self()
		if err != nil {
			t.Fatal(err)
		}
		if self["Stats"]["consul"].(map[string]any)["leader"] == "true" {
			leader = i
		} else {
			follower = i
		}
	}
	s := &stack{t: t, root: "hadrain", dir: testpeer.Dir(t), consul: servers[follower]}
	s.kv = s.consul.Client(t).KV()
	const keys = 2000
	s.fill(keys)
	s.mark()
	p := s.run(nil)
	s.wantKeys(p, keys)
	servers[leader].Kill(t)
	testpeer.WaitFor(t, "a new leader to take a write", func() (bool, string) {
		_, err := s.kv.Put(&consulapi.KVPair{Key: "hadrain/state/web/server-000000", Value: []byte("maint")}, nil)
		return err == nil, fmt.Sprint(err)
	})
	testpeer.WaitFor(t, "the write to arrive", func() (bool, string) {
		f, _, err := statefile.Load(s.statePath())
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Rows) != keys {
			t.Fatalf("a state of %d keys was published, want %d", len(f.Rows), keys)
		}
		return f.Rows[0].State.String() == "maint", p.Output()
	})
	servers[leader].Start(t)
	s.put("web/server-000000", "50%")
	testpeer.WaitFor(t, "a write after the old leader is back", func() (bool, string) {
		f, _, err := statefile.Load(s.statePath())
		return err == nil && f.Rows[0].State.String() == "50%", p.Output()
	})
}

// A token is deleted while Consul holds a read that was authorised by it.
func TestRenderWaitsForAnotherToken(t *testing.T) {
	s := aclConsul(t)
	s.mark()
	s.put("web/a", "drain")
	s.policy("read", readAll)
	token := s.token("read")
	tokenFile := filepath.Join(s.dir, "token")
	write(t, tokenFile, token.SecretID)
	p := s.run(nil, "--token-file", tokenFile)
	s.wantRows(p, "web/a drain")
	if _, err := s.consul.Client(t).ACL().TokenDelete(token.AccessorID, nil); err != nil {
		t.Fatal(err)
	}
	s.put("web/a", "maint") // may still be answered by the read in flight
	p.WaitOutput(t, "reason=http_403")
	s.put("web/a", "50%")
	f, _, err := statefile.Load(s.statePath())
	if err != nil || len(f.Rows) != 1 || f.Rows[0].State.String() == "50%" {
		t.Errorf("the state without a token: %+v, %v", f, err)
	}
	write(t, tokenFile, s.token("read").SecretID)
	s.wantRows(p, "web/a 50%")
}

// Somebody deletes everything, by the command that everybody knows.
func TestRenderKeepsTheFileWhenThePrefixIsDeleted(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	s.put("web/a", "drain")
	p := s.run(nil)
	s.wantRows(p, "web/a drain")
	cmd := exec.Command(testpeer.Need(t, "consul"), "kv", "delete", "-recurse", "hadrain/")
	cmd.Env = append(os.Environ(), "CONSUL_HTTP_ADDR="+s.consul.Addr())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.WaitOutput(t, "reason=no_sentinel")
	s.wantRows(p, "web/a drain")
	s.put("web/a", "maint")
	s.mark()
	s.wantRows(p, "web/a maint")
}

// The most that anybody is expected to have.
func TestRenderTakesAHundredThousandKeys(t *testing.T) {
	t.Setenv("HADRAIN_TEST_TIMEOUT", "60s")
	s := newRenderStack(t, testpeer.ConsulConfig{})
	const keys = 100_000
	s.fill(keys)
	s.mark()
	cmd := s.renderCommand("--start-timeout", "1m")
	cmd.Path = testpeer.BuildPlain(t, "hadrain-render")
	p := testpeer.Start(t, cmd)
	p.WaitOutput(t, "keys=100000")
	s.put("web/server-099999", "maint")
	testpeer.WaitFor(t, "a change among 100,000 keys", func() (bool, string) {
		data, err := os.ReadFile(s.statePath())
		return bytes.Contains(data, []byte("web/server-099999  maint\n")), fmt.Sprint(err, p.Output())
	})
	s.wantKeys(p, keys)
}
