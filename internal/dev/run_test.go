package dev

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// TestDemo: the whole story, in each store, leaves nothing behind.
func TestDemo(t *testing.T) {
	testpeer.Need(t, "haproxy")
	for _, consul := range []bool{false, true} {
		name := map[bool]string{false: "embedded", true: "consul"}[consul]
		t.Run(name, func(t *testing.T) {
			t.Setenv("CONSUL_HTTP_ADDR", "")
			t.Setenv("TMPDIR", testpeer.Dir(t))
			if consul {
				t.Setenv("PATH", filepath.Dir(testpeer.Need(t, "consul"))+":"+os.Getenv("PATH"))
			}
			var out bytes.Buffer
			began := time.Now()
			if err := Run(within(t), Options{Demo: true, Consul: consul}, &out); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("took %v, want less than a minute", took)
			}
			t.Log(out.String())
			if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
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

// TestWithoutHAProxy: the rest runs and the output says what is missing; there
// is no demonstration.
func TestWithoutHAProxy(t *testing.T) {
	defer func(dirs []string) { haproxyDirs = dirs }(haproxyDirs)
	haproxyDirs = nil
	t.Setenv("PATH", t.TempDir())
	ctx, cancel := context.WithCancel(within(t))
	out := &trigger{text: "web/gke-cny-web   ready", then: cancel}
	if err := Run(ctx, Options{}, out); err != nil {
		t.Error(err)
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
}

func (w *trigger) Write(p []byte) (int, error) {
	w.all.Write(p)
	if strings.Contains(w.all.String(), w.text) {
		w.then()
	}
	return len(p), nil
}
