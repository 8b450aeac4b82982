package tests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// Consul is reached with certificates alone. A client's certificate that has
// expired is replaced on disk, an authority with a reload: nothing restarts.
func TestRenderWithCertificates(t *testing.T) {
	authority, dir := testpeer.NewAuthority(t), testpeer.Dir(t)
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		write(t, path, string(data))
		return path
	}
	pair := func(name string, until time.Time) (string, string) {
		cert, key := authority.Issue(t, name, until)
		return file(name+".pem", cert), file(name+".key", key)
	}
	ca := file("ca.pem", authority.PEM())
	cert, key := pair("consul", time.Now().Add(time.Hour))
	s := newRenderStack(t, testpeer.ConsulConfig{HTTPS: true, HCL: fmt.Sprintf(
		"tls { https { verify_incoming = true\n ca_file = %q\n cert_file = %q\n key_file = %q } }", ca, cert, key)})
	s.mark()
	s.put("web/a", "drain")

	mine := file("mine.pem", testpeer.NewAuthority(t).PEM())
	cert, key = pair("client", time.Now().Add(-time.Minute))
	p := s.run([]string{"HTTPS_PROXY=http://127.0.0.1:9"}, "--consul-addr", s.consul.HTTPSAddr(), "--consul-ca-file", mine,
		"--consul-client-cert", cert, "--consul-client-key", key)
	p.WaitOutput(t, "certificate signed by unknown authority")
	write(t, mine, string(authority.PEM()))
	p.Signal(syscall.SIGHUP)
	p.WaitOutput(t, "msg=reloaded")
	if _, err := os.Stat(s.statePath()); err == nil {
		t.Error("an expired certificate was let in")
	}
	pair("client", time.Now().Add(time.Hour))
	s.wantRows(p, "web/a drain")
}

// A client agent whose server hangs waits for it, and then says "500".
func TestRenderBehindAnAgentWhoseServerHangs(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	agent := testpeer.ConsulAgent(t, s.consul, testpeer.ConsulConfig{})
	s.mark()
	s.put("web/a", "drain")
	p := s.run(nil, "--consul-addr", agent.Addr())
	s.wantRows(p, "web/a drain")
	s.consul.Pause(t)
	t.Setenv("HADRAIN_TEST_TIMEOUT", "40s") // a held read may take 20.6 s
	p.WaitOutput(t, "read failed, keeping the state")
	s.wantRows(p, "web/a drain")
	t.Setenv("HADRAIN_TEST_TIMEOUT", "25s")
	s.consul.Resume()
	s.put("web/a", "ready")
	s.wantRows(p, "web/a ready")
	if strings.Contains(p.Output(), "refused") {
		t.Errorf("an answer of the agent was taken for one of Consul's state:\n%s", p.Output())
	}
}

// SIGHUP changes the template of a running render, and its list; not a mistake.
func TestRenderReloads(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	s.put("web/a", "drain")
	source, list, made := filepath.Join(s.dir, "t.tmpl"), filepath.Join(s.dir, "templates.yml"), filepath.Join(s.dir, "made")
	write(t, source, `one {{ desired "web/a" }}`)
	write(t, list, fmt.Sprintf("templates:\n- source: %s\n  destination: %s\n  command: test -s %[2]s\n  timeout: 5s\n", source, made))
	p := s.run(nil, "--templates", list)
	want := func(text string) {
		t.Helper()
		testpeer.WaitFor(t, made+" to hold "+text, func() (bool, string) {
			data, err := os.ReadFile(made)
			return string(data) == text, fmt.Sprintf("%q %v\n%s", data, err, p.Output())
		})
	}
	want("one drain")
	write(t, source, `two {{ desired "web/a" }}`)
	p.Signal(syscall.SIGHUP)
	want("two drain")
	write(t, source, "\n{{ nope }}")
	p.Signal(syscall.SIGHUP)
	p.WaitOutput(t, source+":2:3: there is no function nope")
	s.put("web/a", "maint")
	want("two maint")

	write(t, source, `three {{ desired "web/a" }}`)
	write(t, list, "templates:\n- source: "+source+"\n  destinatoin: x\n")
	p.Signal(syscall.SIGHUP)
	p.WaitOutput(t, list+":3: unknown key destinatoin")
	want("three maint")
	// Another file is made of the state as it is; the one before stays.
	before := made
	made = filepath.Join(s.dir, "another")
	write(t, list, fmt.Sprintf("templates:\n- source: %s\n  destination: %s\n", source, made))
	p.Signal(syscall.SIGHUP)
	want("three maint")
	s.put("web/a", "drain")
	want("three drain")
	if data, err := os.ReadFile(before); string(data) != "three maint" {
		t.Errorf("a file that is listed no more: %q, %v, want it as it was", data, err)
	}

	write(t, list, "templates:\n- sourc: x\n")
	wrong := s.run(nil, "--templates", list)
	if code := wrong.WaitExit(t); code != 2 || !strings.Contains(wrong.Output(), list+":2: unknown key sourc") {
		t.Errorf("an unknown key: exit status %d, want 2 and the place\n%s", code, wrong.Output())
	}
}
