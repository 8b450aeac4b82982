package testpeer

import (
	"os/exec"
	"regexp"
	"testing"
)

var versionLine = regexp.MustCompile(`(?m)^HA-?Proxy version (\d+\.\d+[.\w]*)`)

// EachHAProxy runs f against every HAProxy that [HAProxies] returns, each in a
// sub-test that has the version's name, such as "2.6.12". Behaviour differs by
// version, so a failure has to say which one it was.
func EachHAProxy(t *testing.T, f func(t *testing.T, binary string)) {
	t.Helper()
	for _, binary := range HAProxies(t) {
		out, err := exec.CommandContext(t.Context(), binary, "-v").Output()
		match := versionLine.FindSubmatch(out)
		if err != nil || match == nil {
			t.Fatalf("%s -v: %v; want a line with its version in:\n%s", binary, err, out)
		}
		t.Run(string(match[1]), func(t *testing.T) { f(t, binary) })
	}
}
