package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

const units = "units/kubernetes"

// An overlay is a kustomization of a user's.
type overlay struct {
	components []string // of ours
	haproxy    string   // their haproxy.cfg; empty: ours
	patches    string   // in YAML, below patches:
}

// build returns what the overlay makes of our base.
func (o overlay) build(t *testing.T) []object {
	t.Helper()
	dir := testpeer.Dir(t)
	ours, err := filepath.Rel(dir, filepath.Join(testpeer.Root(t), units))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("namespace: hadrain\nresources: [" + ours + "/base]\n")
	if len(o.components) > 0 {
		text.WriteString("components:\n")
	}
	for _, name := range o.components {
		text.WriteString("- " + ours + "/components/" + name + "\n")
	}
	text.WriteString("images:\n- {name: hadrain, newName: localhost/hadrain, newTag: test}\n- {name: haproxy, newName: localhost/haproxy, newTag: test}\n")
	if o.haproxy != "" {
		text.WriteString("configMapGenerator:\n- {name: hadrain-haproxy, behavior: replace, files: [haproxy.cfg]}\n")
		put(t, filepath.Join(dir, "haproxy.cfg"), o.haproxy)
	}
	if o.patches != "" {
		text.WriteString("patches:\n" + o.patches)
	}
	put(t, filepath.Join(dir, "kustomization.yaml"), text.String())
	return kustomize(t, dir)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// kustomize builds a directory and validates what comes out.
func kustomize(t *testing.T, dir string) []object {
	t.Helper()
	return validated(t, output(t, exec.Command(testpeer.Need(t, "kustomize"), "build", dir)))
}

// validated returns the documents of a text, which must please the API server's
// own validation and Pod Security.
func validated(t *testing.T, text string) []object {
	t.Helper()
	cmd := exec.Command(testpeer.Need(t, "kubevalidate"))
	cmd.Stdin = strings.NewReader(text)
	out := output(t, cmd)
	var objects []object
	decoder := json.NewDecoder(strings.NewReader(out))
	for decoder.More() {
		var o object
		if err := decoder.Decode(&o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

// the returns the one object of the kind with the name.
func the(t *testing.T, objects []object, kind, name string) object {
	t.Helper()
	for _, o := range objects {
		if o.text("kind") == kind && strings.HasPrefix(o.text("metadata", "name"), name) {
			return o
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

// TestManifests: what kustomize makes of every variant pleases a strict decoder,
// the API server's own validation and Pod Security "restricted".
func TestManifests(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			pod := the(t, overlay{components: v.components}.build(t), "Deployment", "hadrain-haproxy")
			for _, part := range []string{"initContainers", "containers"} {
				containers, _ := pod.in("spec", "template", "spec", part).([]any)
				for _, c := range containers {
					// Pod Security does not ask for it.
					o := object(c.(map[string]any))
					if o.in("securityContext", "readOnlyRootFilesystem") != true {
						t.Errorf("%s: its root can be written", o.text("name"))
					}
					variablesInOrder(t, o)
				}
			}
		})
	}
	kustomize(t, units+"/consul-policy")
	kustomize(t, units+"/job")
}

// variablesInOrder: the kubelet puts a variable into another's value only if it
// stands before it.
func variablesInOrder(t *testing.T, container object) {
	t.Helper()
	defined := map[string]bool{}
	env, _ := container.in("env").([]any)
	for _, e := range env {
		v := object(e.(map[string]any))
		for _, m := range variable.FindAllStringSubmatch(v.text("value"), -1) {
			if !defined[m[1]] {
				t.Errorf("%s: %s has $(%s), which is not defined before it", container.text("name"), v.text("name"), m[1])
			}
		}
		defined[v.text("name")] = true
	}
}

var variable = regexp.MustCompile(`\$\((\w+)\)`)

// TestValidationCanFail: each change of our pods is refused.
func TestValidationCanFail(t *testing.T) {
	good := string(encode(t, the(t, overlay{}.build(t), "Deployment", "hadrain-haproxy")))
	for _, c := range []struct{ old, bad, want string }{
		{`"minReadySeconds":10`, `"minReadySecond":10`, "unknown field"},
		{`"minReadySeconds":10`, `"minReadySeconds":-1`, "must be greater than or equal to 0"},
		{`"runAsNonRoot":true`, `"runAsNonRoot":false`, "runAsNonRoot"},
		{`"drop":["ALL"]`, `"drop":["CHOWN"]`, "unrestricted capabilities"},
		{`"mountPath":"/run/hadrain"`, `"mountPath":"/run/hadrain","subPath":"/state"`, "must be a relative path"},
		{`"restartPolicy":"Always","securityContext"`, `"restartPolicy":"Never","securityContext"`, "restartPolicy"},
	} {
		if !strings.Contains(good, c.old) {
			t.Errorf("the pods have no %s", c.old)
		}
		cmd := exec.Command(testpeer.Need(t, "kubevalidate"))
		cmd.Stdin = strings.NewReader(strings.ReplaceAll(good, c.old, c.bad))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, %s; want %s", c.bad, err, out, c.want)
		}
	}
}

// TestConfiguration: HAProxy takes our example.
func TestConfiguration(t *testing.T) {
	out, err := exec.Command(testpeer.Need(t, "haproxy"), "-c", "-f", filepath.Join(testpeer.Root(t), units, "base/haproxy.cfg")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("%v\n%s", err, out)
	}
}

// variants are what we offer, by kustomize's components and by helm's values.
var variants = []struct {
	name       string
	components []string
	values     []string
}{
	{"base", nil, nil},
	{"plain", []string{"plain"}, []string{"sidecars=plain"}},
	{"ipv6", []string{"ipv6"}, []string{"consul.address=http://[$(HOST_IP)]:8500"}},
	{"ipv6 plain", []string{"ipv6", "plain"}, []string{"consul.address=http://[$(HOST_IP)]:8500", "sidecars=plain"}},
	{"without ACL", []string{"without-acl"}, []string{"consul.tokenSecret="}},
	{"without ACL plain", []string{"without-acl", "plain"}, []string{"consul.tokenSecret=", "sidecars=plain"}},
	{"monitoring", []string{"monitoring"}, []string{"monitoring.serviceMonitor=true"}},
}

func TestHelmEqualsKustomize(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			equal(t, helm(t, v.values...), overlay{components: v.components}.build(t))
		})
	}
	t.Run("policy for Consul", func(t *testing.T) {
		all := helm(t, "consul.networkPolicy.enabled=true")
		equal(t, []object{the(t, all, "NetworkPolicy", "hadrain-consul")}, kustomize(t, units+"/consul-policy"))
	})
}

func helm(t *testing.T, values ...string) []object {
	t.Helper()
	return validated(t, output(t, helmTemplate(t, "1.34.3", values...)))
}

func helmTemplate(t *testing.T, version string, values ...string) *exec.Cmd {
	t.Helper()
	args := []string{
		"template", "x", units + "/chart", "--namespace", namespace, "--kube-version", version,
		"--set", "image=localhost/hadrain:test,haproxy.image=localhost/haproxy:test",
	}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	cmd := exec.Command(testpeer.Need(t, "helm"), args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+testpeer.Dir(t))
	cmd.Dir = testpeer.Root(t)
	return cmd
}

// TestHelmRefuses: what would not work is not rendered.
func TestHelmRefuses(t *testing.T) {
	for _, c := range []struct{ version, value, want string }{
		{"1.28.9", "sidecars=native", "set sidecars=plain"},
		{"1.34.3", "sidecars=Native", "want native or plain"},
	} {
		out, err := helmTemplate(t, c.version, c.value).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s with Kubernetes %s: %v, %s; want %q", c.value, c.version, err, out, c.want)
		}
	}
	if out, err := helmTemplate(t, "1.28.9", "sidecars=plain").CombinedOutput(); err != nil {
		t.Errorf("plain with Kubernetes 1.28.9: %v\n%s", err, out)
	}
}

// equal compares objects by kind and name. Left out is how a new configuration
// becomes a rolling update: kustomize names the ConfigMap after its content,
// helm puts a checksum into the pods.
func equal(t *testing.T, helm, kustomize []object) {
	t.Helper()
	a, b := normal(t, helm), normal(t, kustomize)
	for name, text := range a {
		if b[name] != text {
			t.Errorf("%s: helm\n%s\nkustomize\n%s", name, text, b[name])
		}
	}
	for name := range b {
		if a[name] == "" {
			t.Errorf("%s is only kustomize's", name)
		}
	}
}

func normal(t *testing.T, objects []object) map[string]string {
	t.Helper()
	generated := "hadrain-haproxy"
	for _, o := range objects {
		if o.text("kind") == "ConfigMap" {
			generated = o.text("metadata", "name")
		}
	}
	m := map[string]string{}
	for _, o := range objects {
		meta := o.in("metadata").(map[string]any)
		if meta["namespace"] == namespace { // the release's
			delete(meta, "namespace")
		}
		if annotations, ok := o.in("spec", "template", "metadata", "annotations").(map[string]any); ok {
			delete(annotations, "checksum/config")
		}
		var text bytes.Buffer
		if err := json.Indent(&text, encode(t, o), "", " "); err != nil {
			t.Fatal(err)
		}
		name := strings.Replace(o.text("metadata", "name"), generated, "hadrain-haproxy", 1)
		m[o.text("kind")+" "+name] = strings.ReplaceAll(text.String(), `"`+generated+`"`, `"hadrain-haproxy"`)
	}
	return m
}
