package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"hadrain/internal/testpeer"
)

// TestDemo: the whole story ends well and leaves nothing behind. The tests
// directory plays it on every store, as a user would.
func TestDemo(t *testing.T) {
	testpeer.Need(t, "haproxy")
	t.Setenv("TMPDIR", testpeer.Dir(t))
	var out bytes.Buffer
	if err := Run(within(t), Options{Demo: true, Program: "bin/hadrain"}, &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		`$ bin/hadrain drain canary --reason "demonstration: deploying the canaries" --yes`,
		"canary is a group: web/gke-cny-web and api/api-cny name this key, after their own, in agent-send",
		"   # what systemctl reload haproxy does\n",
		"$ kill -USR2 ",
		": stopped the embedded store\n",
		"web/gke-cny-web is DRAIN (agent), api/api-cny is DRAIN (agent)",
		"web/gke-cny-web is MAINT, api/api-cny is MAINT",
		"requests went through HAProxy, 0 failed.\n\nNow try: make run\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRunEnds: the end of the context is the normal end, whenever it comes.
func TestRunEnds(t *testing.T) {
	testpeer.Need(t, "haproxy")
	t.Setenv("TMPDIR", testpeer.Dir(t))
	for _, text := range []string{"", "Ctrl-C", "SERVER", "web/gke-cny-web"} {
		ctx, cancel := context.WithCancel(within(t))
		out := &trigger{text: text, then: cancel}
		if text == "" {
			cancel()
		}
		if err := Run(ctx, Options{}, out); err != nil {
			t.Errorf("ended at %q: %v\n%s", text, err, out.all.String())
		}
		cancel()
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestDemoCut: a demonstration that was cut off is not a success.
func TestDemoCut(t *testing.T) {
	testpeer.Need(t, "haproxy")
	ctx, cancel := context.WithCancelCause(within(t))
	out := &trigger{text: "[2/", then: func() { cancel(errors.New("enough")) }}
	err := Run(ctx, Options{Demo: true}, out)
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v", err)
	}
}

// TestHAProxyDies: an HAProxy that ends by itself ends everything, and the
// error says so.
func TestHAProxyDies(t *testing.T) {
	testpeer.Need(t, "haproxy")
	var pid int
	out := &trigger{text: "SERVER"}
	out.then = func() {
		_, after, _ := strings.Cut(out.all.String(), "kill -USR2 ")
		if _, err := fmt.Sscan(after, &pid); err != nil {
			t.Error(err)
			return
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	err := Run(within(t), Options{}, out)
	if err == nil || !strings.Contains(err.Error(), "haproxy ended by itself (signal: killed)") {
		t.Errorf("error %v", err)
	}
}

// TestWithoutHAProxy: the rest runs and the output says what is missing; there
// is no demonstration.
func TestWithoutHAProxy(t *testing.T) {
	defer func(dirs []string) { haproxyDirs = dirs }(haproxyDirs)
	haproxyDirs = nil
	t.Setenv("PATH", t.TempDir())
	ctx, cancel := context.WithCancel(within(t))
	out := &trigger{text: "last confirmed", then: cancel}
	if err := Run(ctx, Options{}, out); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"HADRAIN_ADDR=127.0.0.1:", "hadrain query web/gke-cny-web canary   # asks at $HADRAIN_ADDR", "web/gke-cny-web   ready"} {
		if !strings.Contains(out.all.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.all.String())
		}
	}
	if !strings.Contains(out.all.String(), "apt-get install haproxy") {
		t.Errorf("output does not say how to install haproxy:\n%s", out.all.String())
	}
	if err := Run(within(t), Options{Demo: true}, io.Discard); !errors.Is(err, errNoHAProxy) {
		t.Errorf("demonstration without haproxy: %v", err)
	}
}

func TestForeignVariables(t *testing.T) {
	t.Setenv("CONSUL_NAMESPACE", "team")
	if err := Run(within(t), Options{}, io.Discard); err == nil || !strings.Contains(err.Error(), "env -u CONSUL_NAMESPACE") {
		t.Errorf("error %v", err)
	}
}

// trigger is an output that does something once a text was written to it.
type trigger struct {
	text string
	then func()
	all  strings.Builder
	done bool
}

func (w *trigger) Write(p []byte) (int, error) {
	w.all.Write(p)
	if !w.done && strings.Contains(w.all.String(), w.text) {
		w.done = true
		w.then()
	}
	return len(p), nil
}
