package tests_test

import (
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// TestVTC runs the scenarios of tests/vtc: dialogues of HAProxy with an agent
// in the language of HAProxy's own regression tests, vtc(7).
func TestVTC(t *testing.T) {
	t.Parallel()
	varnishtest := testpeer.Need(t, "varnishtest")
	p := newResponder(t, 0)
	p.set("canary", "drain", "web/drain", "drain", "web/half", "50%", "web/held", "hold", "web/maint", "maint", "web/ready", "ready")
	host, port, err := net.SplitHostPort(p.agent)
	if err != nil {
		t.Fatal(err)
	}
	limit := strconv.Itoa(int(math.Ceil(testpeer.Timeout(t).Seconds())))
	files, err := filepath.Glob("vtc/*.vtc")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v, %v", files, err)
	}
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		t.Parallel()
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".vtc"), func(t *testing.T) {
				// Its own limit ends all that it has started, so this needs no other.
				cmd := exec.Command(varnishtest, "-t", limit, "-Dagent="+p.agent, "-Dagent_addr="+host, "-Dagent_port="+port, file)
				cmd.Env = append(os.Environ(), "HAPROXY_PROGRAM="+binary, "TMPDIR="+testpeer.Dir(t))
				run := testpeer.Start(t, cmd)
				<-run.Done()
				if code := run.WaitExit(t); code != 0 {
					t.Errorf("%s: exit code %d", file, code)
				}
			})
		}
	})
}
