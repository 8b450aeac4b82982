package kubernetes_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/testpeer"
)

// rootToken is Consul's.
const rootToken = "3a3bfa2b-4f3b-4d38-9a17-3c8f0f0c7a11"

// newConsul starts a Consul with ACLs on the node, initialised for Hadrain.
func newConsul(t *testing.T) *testpeer.ConsulServer {
	t.Helper()
	s := testpeer.Consul(t, testpeer.ConsulConfig{
		Persistent: true, TCP: true, Token: rootToken,
		HCL: `addresses { http = "127.0.0.1 ` + ipv4.address + " " + ipv6.address + `" }
acl { enabled = true default_policy = "deny" tokens { initial_management = "` + rootToken + `" } }`,
	})
	setKey(t, s, ".hadrain", "v1 id=9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d")
	return s
}

func setKey(t *testing.T, s *testpeer.ConsulServer, key, value string) {
	t.Helper()
	if _, err := s.Client(t).KV().Put(&consulapi.KVPair{Key: "hadrain/state/" + key, Value: []byte(value)}, nil); err != nil {
		t.Fatal(err)
	}
}

func clearKey(t *testing.T, s *testpeer.ConsulServer, key string) {
	t.Helper()
	if _, err := s.Client(t).KV().Delete("hadrain/state/"+key, nil); err != nil {
		t.Fatal(err)
	}
}

// newToken returns a token for the policy in a file of units/consul.
func newToken(t *testing.T, s *testpeer.ConsulServer, name, file string) *consulapi.ACLToken {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join(testpeer.Root(t), "units/consul", file))
	if err != nil {
		t.Fatal(err)
	}
	acl := s.Client(t).ACL()
	policy, _, err := acl.PolicyCreate(&consulapi.ACLPolicy{Name: name, Rules: string(rules)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := acl.TokenCreate(&consulapi.ACLToken{Policies: []*consulapi.ACLLink{{ID: policy.ID}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// secret is the Secret with a token.
func secret(name, token string) object {
	return object{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": object{"name": name}, "stringData": object{"token": token},
	}
}

// port returns the port that Consul got.
func port(t *testing.T, s *testpeer.ConsulServer) string {
	t.Helper()
	u, err := url.Parse(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// replaced returns a file of our units with old words replaced by new ones.
func replaced(t *testing.T, path string, oldnew ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testpeer.Root(t), units, path))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(oldnew...).Replace(string(data))
}
