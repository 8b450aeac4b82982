// Package testpeer starts the real programs that the tests run against: a
// Consul, an HAProxy, and Hadrain's own commands. Only tests import it.
//
// A peer that is not installed skips the test that needs it. With
// $HADRAIN_TEST_REQUIRE_PEERS set to anything it fails the test instead, so
// that a continuous integration cannot turn green by having nothing installed.
//
// Everything that is started here is in a process group of its own, is stopped
// and waited for before its test ends, and dies with the test binary.
package testpeer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A source is where a peer is found.
type source struct {
	variable string   // environment variable with paths, ':' between them
	paths    []string // looked at before the PATH; relative to the repository's root
	fallback []string // looked at after the PATH
	hint     string
}

// builtHere is the source of what .ci/kubernetes builds.
func builtHere(name string) source {
	return source{paths: []string{".ci/bin/" + name}, hint: ".ci/kubernetes " + name + " builds it"}
}

// peers says where each peer is looked for besides the PATH, and how to get it.
var peers = map[string]source{
	"consul": {
		variable: "HADRAIN_TEST_CONSUL",
		paths:    []string{".ci/bin/consul"},
		hint:     "make peers builds it, or set HADRAIN_TEST_CONSUL",
	},
	"haproxy": {
		variable: "HADRAIN_TEST_HAPROXY",
		fallback: []string{"/usr/sbin/haproxy"}, // not on the PATH of plain users
		hint:     "apt-get install haproxy, or set HADRAIN_TEST_HAPROXY",
	},
	"systemd-socket-activate": {hint: "apt-get install systemd"},
	"systemd-nspawn":          {hint: "apt-get install systemd-container"},
	"nginx":                   {fallback: []string{"/usr/sbin/nginx"}, hint: "apt-get install nginx-light"},
	"ip":                      {fallback: []string{"/usr/sbin/ip"}, hint: "apt-get install iproute2"},
	"tc":                      {fallback: []string{"/usr/sbin/tc"}, hint: "apt-get install iproute2"},
	"promtool":                {hint: "apt-get install prometheus"},
	"chromium":                {hint: "apt-get install chromium"},
	"varnishtest":             {hint: "apt-get install varnish"},
	"kustomize":               builtHere("kustomize"),
	"kubevalidate":            builtHere("kubevalidate"),
	"helm":                    builtHere("helm"),
	"kubelet":                 builtHere("kubelet"),
	"kube-apiserver":          builtHere("kube-apiserver"),
	"etcd":                    {hint: "apt-get install etcd-server"},
	"containerd":              {hint: "apt-get install containerd containernetworking-plugins runc"},
}

// Need returns the path of the named peer's binary: "consul", "haproxy", or
// any program on the PATH. Where there is none it skips the test, or fails it
// if peers are required.
func Need(t testing.TB, name string) string {
	t.Helper()
	return find(t, name)[0]
}

// HAProxies returns every HAProxy binary to test against: those that
// $HADRAIN_TEST_HAPROXY lists, ':' between them, else the installed one. Never
// empty: where there is none it skips or fails as [Need] does.
func HAProxies(t testing.TB) []string {
	t.Helper()
	return find(t, "haproxy")
}

// Missing skips the test for want of what, or fails it if peers are required.
// It is for needs that are no program, such as root's rights.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("HADRAIN_TEST_REQUIRE_PEERS") != "" {
		t.Fatalf("HADRAIN_TEST_REQUIRE_PEERS is set, but this test needs %s", what)
	}
	t.Skipf("needs %s", what)
}

func find(t testing.TB, name string) []string {
	t.Helper()
	p := peers[name]
	if list := os.Getenv(p.variable); p.variable != "" && list != "" {
		// What somebody named must be there: skipping would hide a typo.
		return mustExist(t, p.variable, filepath.SplitList(list))
	}
	for _, path := range p.paths {
		if path = filepath.Join(Root(t), path); executable(path) {
			return []string{path}
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return []string{path}
	}
	for _, path := range p.fallback {
		if executable(path) {
			return []string{path}
		}
	}
	Missing(t, strings.TrimSuffix(fmt.Sprintf("%s (%s)", name, p.hint), " ()"))
	panic("unreachable: Missing ends the test")
}

func mustExist(t testing.TB, variable string, paths []string) []string {
	t.Helper()
	for _, path := range paths {
		if !executable(path) {
			t.Fatalf("%s names %q, which is no executable file", variable, path)
		}
	}
	return paths
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Root returns the repository's root: the nearest directory above the test's
// own that holds a go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("finding the repository's root: %v", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir
		}
		if !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			t.Fatalf("finding the repository's root: no go.mod above the working directory: %v", err)
		}
	}
}

// Dir returns a new directory that is removed when the test ends. Its path is
// short, unlike that of t.TempDir: a unix socket's address holds 107 bytes.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hadrain-test-")
	if err != nil {
		t.Fatalf("making a directory for sockets: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing a test's directory: %v", err)
		}
	})
	return dir
}
