package tests_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// shippedPolicy returns a policy that is installed with the units.
func shippedPolicy(t *testing.T, name string) string {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join(testpeer.Root(t), "units", "consul", "policy-"+name+".hcl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(rules)
}

// hadrain runs the CLI with a token, and returns what it said and its status.
func (s *stack) hadrain(token string, args ...string) (output string, code int) {
	s.t.Helper()
	cmd := exec.Command(testpeer.Build(s.t, "hadrain"), args...)
	cmd.Env = append(os.Environ(), "CONSUL_HTTP_ADDR="+s.consul.Addr(), "CONSUL_HTTP_TOKEN="+token)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// The policies that are shipped are enough, and no more: each program can do
// what it is for, and is told the rule that it lacks for anything else.
func TestShippedPolicies(t *testing.T) {
	for _, keyList := range []bool{false, true} {
		t.Run(fmt.Sprintf("enable_key_list_policy=%t", keyList), func(t *testing.T) {
			s := aclConsul(t, fmt.Sprintf("enable_key_list_policy = %t", keyList))
			tokens := map[string]string{
				"nothing": "", "unknown": "22222222-0000-4000-8000-000000000002",
			}
			for name, rules := range map[string]string{
				"render": shippedPolicy(t, "render"), "cli": shippedPolicy(t, "cli"), "init": shippedPolicy(t, "init"),
				"read": readAll, "none": readNone, "no journal": `key_prefix "hadrain/state/" { policy = "write" }`,
			} {
				s.policy(strings.ReplaceAll(name, " ", "-"), rules)
				tokens[name] = s.token(strings.ReplaceAll(name, " ", "-")).SecretID
			}
			s.allowed(tokens)
			s.denied(tokens, keyList)
		})
	}
}

func (s *stack) allowed(tokens map[string]string) {
	s.t.Helper()
	for _, step := range []struct{ token, args string }{
		{"init", "init"},
		{"cli", "drain web/a canary --reason chg-123 --yes"},
		{"cli", "clear canary --yes"},
		{"render", "status"},
	} {
		if out, code := s.hadrain(tokens[step.token], strings.Fields(step.args)...); code != 0 {
			s.t.Fatalf("hadrain %s with the token for %s: exit status %d\n%s", step.args, step.token, code, out)
		}
	}
	p := s.run([]string{"CONSUL_HTTP_TOKEN=" + tokens["render"]})
	s.wantRows(p, "web/a drain")
	p.Stop(s.t)
	if err := os.Remove(s.statePath()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stack) denied(tokens map[string]string, keyList bool) {
	s.t.Helper()
	const drain, list = "drain web/b --yes", `key_prefix "hadrain/state/" { policy = "list" }`
	steps := []struct{ token, args, says string }{
		{"nothing", drain, "no token was sent"},
		{"unknown", drain, "unknown, deleted or expired"},
		{"none", "status", list},
		{"render", drain, `key_prefix "hadrain/state/" { policy = "write" }; nothing was written`},
		{"no journal", drain, `key_prefix "hadrain/journal/" { policy = "write" }; nothing was written`},
		{"init", drain, `key_prefix "hadrain/state/" { policy = "write" }; nothing was written`},
	}
	if keyList {
		steps[2].says = `policy "list"`
		steps = append(steps, struct{ token, args, says string }{"read", "status", `policy "list"`})
	}
	for _, step := range steps {
		if out, code := s.hadrain(tokens[step.token], strings.Fields(step.args)...); code != 1 || !strings.Contains(out, step.says) {
			s.t.Errorf("hadrain %s with the token for %s: exit status %d, want 1 and %q\n%s", step.args, step.token, code, step.says, out)
		}
	}
	if keyList {
		s.refused([]string{"CONSUL_HTTP_TOKEN=" + tokens["read"]}, "http_403", "key:list", `policy \"list\"`)
	}
	s.sentinelIsSafe(tokens["cli"])
}

// sentinelIsSafe fails unless Consul keeps the token from removing the mark.
func (s *stack) sentinelIsSafe(token string) {
	s.t.Helper()
	cmd := exec.Command(testpeer.Need(s.t, "consul"), "kv", "delete", "-recurse", "hadrain/state/")
	cmd.Env = append(os.Environ(), "CONSUL_HTTP_ADDR="+s.consul.Addr(), "CONSUL_HTTP_TOKEN="+token)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "403") {
		s.t.Errorf("deleting the whole prefix with the token of the CLI: %v\n%s", err, out)
	}
	if _, err := s.kv.Delete("hadrain/state/.hadrain", nil); err != nil {
		s.t.Fatal(err)
	}
	const says = `key "hadrain/state/.hadrain" { policy = "write" }; nothing was written`
	if out, code := s.hadrain(token, "init"); code != 1 || !strings.Contains(out, says) {
		s.t.Errorf("hadrain init with the token of the CLI: exit status %d, want 1 and %q\n%s", code, says, out)
	}
}
