package render_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/devstore"
	"hadrain/internal/kv"
	"hadrain/internal/render"
	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

const (
	idA = "6f1c7c0a-4d9e-4c65-8f0e-2b1c9a7d5e43"
	idB = "00000000-4d9e-4c65-8f0e-2b1c9a7d5e43"
)

// rig is a render of this process on an embedded store.
type rig struct {
	t      *testing.T
	client *consulapi.Client
	cfg    render.Config
	log    *testpeer.Output

	stop   context.CancelFunc
	done   chan struct{}
	result error
}

// newRig serves a store with the sentinel. Nothing renders yet.
func newRig(t *testing.T) *rig {
	t.Helper()
	store := devstore.New()
	server := httptest.NewServer(store)
	t.Cleanup(func() {
		store.Close()
		server.CloseClientConnections()
		server.Close()
	})
	r := &rig{t: t, log: &testpeer.Output{}}
	r.cfg = render.Config{
		Consul: kv.Config{Address: server.URL, MaxBytes: render.DefaultMaxBytes}, Root: "hadrain",
		State: filepath.Join(t.TempDir(), "state"), Host: "host-1",
		StartTimeout: testpeer.Timeout(t), Quiet: 10 * time.Millisecond, MaxKeys: render.DefaultMaxKeys,
	}
	client, err := r.cfg.Consul.Client()
	if err != nil {
		t.Fatal(err)
	}
	r.client = client
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections() })
	r.put(".hadrain", kv.FormatSentinel(idA))
	return r
}

func (r *rig) put(key, value string) {
	r.t.Helper()
	if _, err := r.client.KV().Put(&consulapi.KVPair{Key: "hadrain/state/" + key, Value: []byte(value)}, nil); err != nil {
		r.t.Fatalf("putting %s: %v", key, err)
	}
}

// txn writes by a transaction, which takes keys that put cannot write.
func (r *rig) txn(key, value string) {
	r.t.Helper()
	op := &consulapi.KVTxnOp{Verb: consulapi.KVSet, Key: "hadrain/state/" + key, Value: []byte(value)}
	if ok, answer, _, err := r.client.Txn().Txn(consulapi.TxnOps{{KV: op}}, nil); err != nil || !ok {
		r.t.Fatalf("putting %q: %v, %+v", key, err, answer)
	}
}

func (r *rig) delete(key string) {
	r.t.Helper()
	if _, err := r.client.KV().Delete("hadrain/state/"+key, nil); err != nil {
		r.t.Fatalf("deleting %s: %v", key, err)
	}
}

// start runs render until the test ends, or until halt.
func (r *rig) start() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.done = cancel, make(chan struct{})
	go func() {
		defer close(r.done)
		r.result = render.Run(ctx, r.cfg, slog.New(slog.NewTextHandler(r.log, nil)))
	}()
	r.t.Cleanup(func() { cancel(); <-r.done })
}

// halt stops render and returns its error.
func (r *rig) halt() error {
	r.stop()
	return r.wait()
}

func (r *rig) wait() error {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(testpeer.Timeout(r.t)):
		r.t.Fatalf("render still runs; log:\n%s", r.log)
	}
	return r.result
}

// want waits until the file says each of lines ("key state"), and nothing else.
func (r *rig) want(lines ...string) {
	r.t.Helper()
	want := strings.Join(lines, "; ")
	testpeer.WaitFor(r.t, "the state "+want, func() (bool, string) {
		f, _, err := statefile.Load(r.cfg.State)
		if err != nil {
			return want == "none" && errors.Is(err, os.ErrNotExist), err.Error()
		}
		var got []string
		for _, row := range f.Rows {
			text := row.Key + " " + row.State.String()
			if row.Rejected != "" {
				text += " rejected"
			}
			got = append(got, text)
		}
		return strings.Join(got, "; ") == want, strings.Join(got, "; ") + "\n" + r.log.String()
	})
}

func (r *rig) wantLog(text string) {
	r.t.Helper()
	testpeer.WaitFor(r.t, "the log to say "+text, func() (bool, string) {
		return strings.Contains(r.log.String(), text), r.log.String()
	})
}

// serve has render serve HTTP, and returns the URL.
func (r *rig) serve() string {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.cfg.Listen = func() (net.Listener, error) { return l, nil }
	return "http://" + l.Addr().String()
}

// wantClosed waits until c is closed.
func wantClosed(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testpeer.Timeout(t)):
		t.Fatalf("no end of waiting: %s", what)
	}
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b.String()
}
