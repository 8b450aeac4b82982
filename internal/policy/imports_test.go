package policy_test

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// rules say what our packages may import, tests aside. DO NOT CHANGE THIS DATA
// TO FIX BUILDS: the data flow is kv -> desired -> statefile -> agentcheck, and
// the reader of Consul and the server of checks share nothing but the file.
//
//	PACKAGE only WHAT...     imports nothing but the standard library and WHAT
//	PACKAGE without WHAT...  contains none of WHAT, not through others either
//	WHAT in PACKAGE...       no other package of ours imports WHAT itself
//
// A name ending in /... stands for all below it, and itself.
const rules = `
hadrain/internal/desired    only
hadrain/internal/statefile  only     hadrain/internal/desired github.com/fsnotify/fsnotify
hadrain/internal/version    only
hadrain/internal/footprint  only     golang.org/x/sys/unix
hadrain/internal/systemd    only     github.com/coreos/go-systemd/v22/daemon

hadrain/internal/agentcheck without  hadrain/internal/kv github.com/hashicorp/...
hadrain/internal/responder  without  hadrain/internal/kv github.com/hashicorp/...
hadrain/cmd/responder       without  hadrain/internal/kv github.com/hashicorp/...

github.com/hashicorp/consul-template/...  in  hadrain/internal/kv hadrain/internal/render
hadrain/internal/testpeer                 in  hadrain/tests/...
`

// A goPackage is what go list says about a package.
type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string // of its code, without its tests
	Deps       []string // the same, through others too
}

func TestImports(t *testing.T) {
	packages := list(t)
	for line := range strings.Lines(rules) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		name, verb, rest := words[0], words[1], words[2:]
		if verb != "in" && packages[name] == nil {
			t.Errorf("rule %q: there is no package %s", strings.TrimSpace(line), name)
			continue
		}
		switch verb {
		case "only":
			only(t, packages, packages[name], rest)
		case "without":
			without(t, packages[name], rest)
		case "in":
			in(t, packages, name, rest)
		default:
			t.Errorf("rule %q: unknown verb %q", strings.TrimSpace(line), verb)
		}
	}
}

func only(t *testing.T, all map[string]*goPackage, p *goPackage, allowed []string) {
	t.Helper()
	for _, path := range p.Imports {
		if standard := all[path] != nil && all[path].Standard; !standard && !matches(path, allowed) {
			t.Errorf("%s imports %s; allowed: the standard library and %v", p.ImportPath, path, allowed)
		}
	}
}

func without(t *testing.T, p *goPackage, forbidden []string) {
	t.Helper()
	for _, path := range p.Deps {
		if matches(path, forbidden) {
			t.Errorf("%s contains %s, see go list -deps", p.ImportPath, path)
		}
	}
}

func in(t *testing.T, all map[string]*goPackage, pattern string, allowed []string) {
	t.Helper()
	for _, p := range all {
		if !matches(p.ImportPath, []string{"hadrain/..."}) || matches(p.ImportPath, allowed) {
			continue
		}
		for _, path := range p.Imports {
			if matches(path, []string{pattern}) {
				t.Errorf("%s imports %s; only %v may", p.ImportPath, path, allowed)
			}
		}
	}
}

// matches reports whether path is one of patterns.
func matches(path string, patterns []string) bool {
	for _, pattern := range patterns {
		root, tree := strings.CutSuffix(pattern, "/...")
		if path == root || tree && strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// list returns our packages and all that they contain, by import path.
func list(t *testing.T) map[string]*goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", "./...")
	cmd.Dir = testpeer.Root(t)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, problem.String())
	}
	packages := map[string]*goPackage{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("decoding go list's output: %v", err)
		}
		packages[p.ImportPath] = &p
	}
}

// The binary tells for itself; a package list could miss a build tag.
func TestResponderBinary(t *testing.T) {
	path := testpeer.Build(t, "hadrain-responder")
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 {
		t.Error("the binary names no module at all, so this test says nothing")
	}
	for _, module := range info.Deps {
		if matches(module.Path, []string{"github.com/hashicorp/..."}) {
			t.Errorf("the responder's binary contains %s", module.Path)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		path, pattern string
		want          bool
	}{
		{"a/b", "a/b", true},
		{"a/b/c", "a/b", false},
		{"a/b/c", "a/b/...", true},
		{"a/b", "a/b/...", true},
		{"a/bc", "a/b/...", false},
	} {
		if got := matches(tc.path, []string{tc.pattern}); got != tc.want {
			t.Errorf("matches(%q, %q) = %v, want %v", tc.path, tc.pattern, got, tc.want)
		}
	}
}
