package tests_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/testpeer"
)

// aclConsul is a render stack whose Consul denies by default. more are lines of its
// section acl.
func aclConsul(t *testing.T, more ...string) *stack {
	t.Helper()
	return newRenderStack(t, testpeer.ConsulConfig{Token: managementToken, HCL: fmt.Sprintf(
		"acl { enabled = true\n default_policy = \"deny\"\n tokens { initial_management = %q }\n%s }", managementToken, strings.Join(more, "\n"))})
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
	s.mark()
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
	s.refused([]string{"CONSUL_HTTP_TOKEN=" + managementToken, "CONSUL_NAMESPACE=team"}, "http_400", "Consul Enterprise")
}

func TestRenderSurvivesChangesOfItsToken(t *testing.T) {
	s := aclConsul(t)
	s.mark()
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
