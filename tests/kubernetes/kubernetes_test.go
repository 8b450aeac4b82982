package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// TestKubernetes is one story on one cluster: starting one takes longer than
// most of its parts.
func TestKubernetes(t *testing.T) {
	s := &story{t: t, cluster: newCluster(t), consul: newConsul(t), backends: newBackends(t, ipv4)}
	t.Run("the API server takes every variant", s.dryRun)
	s.setUp(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Consul is away at the start", s.consulAwayAtStart},
		{"a drain reaches HAProxy", s.drain},
		{"render is killed", s.renderKilled},
		{"the responder hangs", s.responderHangs},
		{"a pod that starts during a drain is drained before it is ready", s.startsDrained},
		{"Consul is away", s.consulAway},
		{"the token is rotated", s.tokenRotated},
		{"the command line as a job", s.job},
		{"the command line from a shell", s.shell},
		{"plain containers", s.plain},
		{"IPv6", s.ipv6},
		{"a rolling update under traffic", s.rollingUpdate},
	} {
		if !t.Run(part.name, part.run) {
			return // the next part would start from a state that nobody knows
		}
	}
}

// A story is what its parts share.
type story struct {
	t *testing.T // of the whole
	*cluster
	consul     *testpeer.ConsulServer
	backends   *backends
	deployment object
	plainOne   object
}

// serviceMonitors is the part of the Prometheus operator's definition that an
// API server needs to know the kind.
var serviceMonitors = object{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": object{"name": "servicemonitors.monitoring.coreos.com"},
	"spec": object{
		"group": "monitoring.coreos.com", "scope": "Namespaced",
		"names": object{"kind": "ServiceMonitor", "plural": "servicemonitors"},
		"versions": []object{{
			"name": "v1", "served": true, "storage": true,
			"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}},
	},
}

func (s *story) dryRun(t *testing.T) {
	s.create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", serviceMonitors)
	testpeer.WaitFor(t, "the API server to know ServiceMonitors", func() (bool, string) {
		_, err := s.request("GET", "/apis/monitoring.coreos.com/v1/servicemonitors", "", nil)
		return err == nil, fmt.Sprint(err)
	})
	s.create(t, "/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "consul"}})
	all := map[string][]object{"consul-policy": kustomize(t, units+"/consul-policy"), "job": kustomize(t, units+"/job")}
	for _, v := range variants {
		all[v.name] = overlay{components: v.components}.build(t)
	}
	for name, objects := range all {
		for _, o := range objects {
			if err := s.apply(t, o, true); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// The same, of something wrong, to see that it is looked at.
	bad := all["base"][0]
	bad["spec"] = object{"no-such-field": 1}
	if err := s.apply(t, bad, true); err == nil {
		t.Errorf("%v was taken", bad)
	}
}

// setUp applies what the pods need, and leaves Consul switched off.
func (s *story) setUp(t *testing.T) {
	t.Helper()
	objects := s.overlay(t).build(t)
	s.deployment = the(t, objects, "Deployment", "hadrain-haproxy")
	plain := overlay{components: []string{"plain"}, haproxy: s.backends.config(t)}.build(t)
	s.plainOne = s.withPort(t, the(t, plain, "Deployment", "hadrain-haproxy"))
	for _, o := range []object{
		the(t, objects, "ConfigMap", "hadrain-haproxy"),
		secret("hadrain-consul-token", newToken(t, s.consul, "first", "policy-render.hcl").SecretID),
		secret("hadrain-consul-writer-token", newToken(t, s.consul, "writer", "policy-cli.hcl").SecretID),
	} {
		if err := s.apply(t, o, false); err != nil {
			t.Fatal(err)
		}
	}
	s.consul.Stop(t)
}

// overlay has the servers of this test, and Consul's port, which is not 8500.
func (s *story) overlay(t *testing.T) overlay {
	t.Helper()
	return overlay{haproxy: s.backends.config(t), patches: `
- target: {kind: Deployment}
  patch: |-
    - op: replace
      path: /spec/template/spec/initContainers/0/env/1
      value: {name: CONSUL_HTTP_ADDR, value: "http://$(HOST_IP):` + port(t, s.consul) + `"}
`}
}

// withPort returns o with Consul's port and our image.
func (s *story) withPort(t *testing.T, o object) (changed object) {
	t.Helper()
	words := strings.NewReplacer(`"hadrain:devel"`, `"localhost/hadrain:test"`, ":8500", ":"+port(t, s.consul))
	if err := json.Unmarshal([]byte(words.Replace(string(encode(t, o)))), &changed); err != nil {
		t.Fatal(err)
	}
	return changed
}

// consulAwayAtStart: the pod waits and says why, and is ready seconds after
// Consul is there, since nothing in it has given up meanwhile.
func (s *story) consulAwayAtStart(t *testing.T) {
	s.run(t, "a", s.deployment)
	s.await(t, "a", "to wait for Consul", func(p pod) bool { return p.container("render").State["running"] != nil })
	testpeer.WaitFor(t, "an event that says why", func() (bool, string) {
		all := strings.Join(s.events(t, "a"), "\n")
		return strings.Contains(all, "Startup probe failed") && strings.Contains(all, "connection refused"), all
	})
	during(t, 10*time.Second, func() (bool, string) {
		p, _ := s.look(t, "a")
		return !p.ready() && p.container("haproxy").State["running"] == nil, "not synced, but " + p.String()
	})
	s.consul.Start(s.t) // it outlives this part
	start := time.Now()
	p := s.awaitReady(t, "a")
	took := time.Since(start)
	t.Logf("ready %v after Consul", took.Round(time.Second))
	if took > 20*time.Second || p.container("render").RestartCount != 0 {
		t.Errorf("ready %v after Consul: %v", took, p)
	}
}

func (s *story) pod(t *testing.T, name string) pod {
	t.Helper()
	p, ok := s.look(t, name)
	if !ok {
		t.Fatalf("no pod %s", name)
	}
	return p
}

func (s *story) drain(t *testing.T) {
	p := s.pod(t, "a")
	awaitStatus(t, p, "web-01", "UP")
	setKey(t, s.consul, "web/web-01", "drain")
	awaitStatus(t, p, "web-01", "DRAIN (agent)")
	setKey(t, s.consul, "canary", "maint")
	awaitStatus(t, p, "web-02", "MAINT")
	clearKey(t, s.consul, "canary")
	awaitStatus(t, p, "web-02", "UP")
}

func (s *story) renderKilled(t *testing.T) {
	p := s.pod(t, "a")
	s.signal(t, p, "hadrain-render", syscall.SIGKILL)
	p = s.await(t, "a", "to have restarted render", func(p pod) bool { return p.container("render").RestartCount == 1 && p.ready() })
	if got := mustStatus(t, p, "web-01"); got != "DRAIN (agent)" {
		t.Errorf("web-01 is %s after render was killed", got)
	}
	clearKey(t, s.consul, "web/web-01")
	awaitStatus(t, p, "web-01", "UP")
	if n := p.container("haproxy").RestartCount + p.container("responder").RestartCount; n != 0 {
		t.Errorf("others were restarted: %v", p)
	}
}

// responderHangs: its liveness probe has it restarted; meanwhile HAProxy keeps
// what it was told last.
func (s *story) responderHangs(t *testing.T) {
	p := s.pod(t, "a")
	setKey(t, s.consul, "web/web-01", "drain")
	awaitStatus(t, p, "web-01", "DRAIN (agent)")
	s.signal(t, p, "hadrain-responder", syscall.SIGSTOP)
	p = s.await(t, "a", "to have restarted the responder", func(p pod) bool {
		if got, err := status(p, "web-01"); err != nil || got != "DRAIN (agent)" {
			t.Fatalf("web-01 is %q, %v while the responder hangs", got, err)
		}
		return p.container("responder").RestartCount == 1 && p.ready()
	})
	clearKey(t, s.consul, "web/web-01")
	awaitStatus(t, p, "web-01", "UP")
	if p.container("haproxy").RestartCount != 0 {
		t.Errorf("HAProxy was restarted: %v", p)
	}
}

func (s *story) startsDrained(t *testing.T) {
	setKey(t, s.consul, "web/web-01", "drain")
	s.run(t, "b", s.deployment)
	p := s.awaitReady(t, "b")
	if got := mustStatus(t, p, "web-01"); got != "DRAIN (agent)" {
		t.Errorf("web-01 is %s when the pod is ready", got)
	}
	if got := mustStatus(t, p, "web-03"); got != "DOWN" {
		t.Errorf("web-03, which is down, is %s when the pod is ready", got)
	}
	before := s.backends.asked[0].Load()
	for range 50 {
		ask(t, p)
	}
	if n := s.backends.asked[0].Load() - before; n != 0 {
		t.Errorf("the drained server was asked %d times of 50", n)
	}
	clearKey(t, s.consul, "web/web-01")
	awaitStatus(t, p, "web-01", "UP")
}

// ask sends one request through the pod, which must be answered.
func ask(t *testing.T, p pod) {
	t.Helper()
	resp, err := http.Get("http://" + net.JoinHostPort(p.Status.PodIP, "8080"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("asking %s: %s", p.Metadata.Name, resp.Status)
	}
}

// consulAway: pods stay ready, and a restart of render in the meantime takes a
// pod out for no longer than it takes.
func (s *story) consulAway(t *testing.T) {
	setKey(t, s.consul, "web/web-01", "drain")
	p := s.pod(t, "a")
	awaitStatus(t, p, "web-01", "DRAIN (agent)")
	s.consul.Stop(t)
	well := func() (bool, string) {
		p, _ := s.look(t, "a")
		got, err := status(p, "web-01")
		return p.ready() && got == "DRAIN (agent)", fmt.Sprintf("without Consul: %v, web-01 %s, %v", p, got, err)
	}
	during(t, 10*time.Second, well)
	if n := s.pod(t, "a").container("render").RestartCount; n != 1 {
		t.Errorf("render was restarted %d times, 1 of them by this test", n)
	}
	s.signal(t, p, "hadrain-render", syscall.SIGKILL)
	killed := time.Now()
	s.await(t, "a", "to have restarted render again", func(p pod) bool { return p.container("render").RestartCount == 2 && p.ready() })
	t.Logf("ready again %v after render was killed without Consul", time.Since(killed).Round(time.Second))
	during(t, 10*time.Second, well)
	s.consul.Start(s.t) // it outlives this part
	clearKey(t, s.consul, "web/web-01")
	awaitStatus(t, p, "web-01", "UP")
}

func (s *story) tokenRotated(t *testing.T) {
	second := newToken(t, s.consul, "second", "policy-render.hcl")
	if err := s.apply(t, secret("hadrain-consul-token", second.SecretID), false); err != nil {
		t.Fatal(err)
	}
	s.awaitToken(t, second.SecretID)
	tokens, _, err := s.consul.Client(t).ACL().TokenList(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if len(token.Policies) == 1 && token.Policies[0].Name == "first" {
			if _, err := s.consul.Client(t).ACL().TokenDelete(token.AccessorID, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	setKey(t, s.consul, "web/web-02", "drain")
	for _, name := range []string{"a", "b"} {
		p := s.pod(t, name)
		awaitStatus(t, p, "web-02", "DRAIN (agent)")
		if !p.ready() {
			t.Errorf("not ready after the rotation: %v", p)
		}
	}
	clearKey(t, s.consul, "web/web-02")
}

// job runs the example job's pod: it writes with the writer's token.
func (s *story) job(t *testing.T) {
	s.run(t, "job", s.withPort(t, the(t, kustomize(t, units+"/job"), "Job", "hadrain-drain-canary")))
	s.await(t, "job", "to succeed", func(p pod) bool { return p.Status.Phase == "Succeeded" })
	awaitStatus(t, s.pod(t, "a"), "web-02", "DRAIN (agent)")
	clearKey(t, s.consul, "canary")
	awaitStatus(t, s.pod(t, "a"), "web-02", "UP")
}

// plain: the same without native sidecars.
func (s *story) plain(t *testing.T) {
	setKey(t, s.consul, "web/web-01", "drain")
	s.run(t, "plain", s.plainOne)
	p := s.awaitReady(t, "plain")
	if got := mustStatus(t, p, "web-01"); got != "DRAIN (agent)" {
		t.Errorf("web-01 is %s when the pod is ready", got)
	}
	ask(t, p)
	clearKey(t, s.consul, "web/web-01")
	awaitStatus(t, p, "web-01", "UP")
	s.delete(t, "plain")
}

// ipv6: pods that have no other address, on a node that has no other.
func (s *story) ipv6(t *testing.T) {
	objects := overlay{components: []string{"ipv6"}, haproxy: newBackends(t, ipv6).config(t)}.build(t)
	if err := s.apply(t, the(t, objects, "ConfigMap", "hadrain-haproxy"), false); err != nil {
		t.Fatal(err)
	}
	setKey(t, s.consul, "web/web-01", "drain")
	s.runOn(t, ipv6, "six", s.withPort(t, the(t, objects, "Deployment", "hadrain-haproxy")))
	p := s.awaitReady(t, "six")
	if got := mustStatus(t, p, "web-01"); got != "DRAIN (agent)" || !strings.Contains(p.Status.PodIP, ":") {
		t.Errorf("web-01 is %s when the pod is ready: %v", got, p)
	}
	ask(t, p)
	clearKey(t, s.consul, "web/web-01")
	awaitStatus(t, p, "web-01", "UP")
	s.delete(t, "six")
}

// shell is kubectl exec of the command line, which has its settings from the
// container of render.
func (s *story) shell(t *testing.T) {
	setKey(t, s.consul, "canary", `drain # by=alice reason="by hand"`)
	awaitStatus(t, s.pod(t, "a"), "web-02", "DRAIN (agent)")
	id := strings.TrimPrefix(s.pod(t, "a").container("render").ContainerID, "containerd://")
	out := shell(t, fmt.Sprintf("ctr -a %s/%s/c.sock -n k8s.io task exec --exec-id shell %s hadrain status", s.dir, ipv4.node, id))
	if !strings.Contains(out, "canary") || !strings.Contains(out, "alice") {
		t.Errorf("hadrain status in the pod printed\n%s", out)
	}
	t.Logf("hadrain status:\n%s", out)
	clearKey(t, s.consul, "canary")
}
