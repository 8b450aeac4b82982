package render_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"hadrain/internal/devstore"
	"hadrain/internal/kv"
	"hadrain/internal/render"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/statusjson"
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

func TestKeysBecomeTheFile(t *testing.T) {
	r := newRig(t)
	r.put("canary", `drain # by=alice reason="x"`)
	r.start()
	r.want("canary drain")
	r.put("web/web-07", "50%")
	r.want("canary drain", "web/web-07 50%")
	r.delete("canary")
	r.want("web/web-07 50%")
	if err := r.halt(); err != nil {
		t.Errorf("Run() = %v after a stop, want nil", err)
	}
	r.want("web/web-07 50%")
}

// TestTemplate holds what the template makes against the reference.
func TestTemplate(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("k", 300)
	for key, value := range map[string]string{
		"canary": `drain # by=alice at=2026-09-09T12:00:02Z reason="a \"b\" ü"`, "web/a": "ready", "web/b": "dran",
		"web/c": "50%", "a b": "drain", "é": "drain", long: "drain", "web/": "", "": "", "/slash": "maint",
		"new\nline drain": "ready", "#x": "ready", "n": "ready # rejected as a note\x01",
	} {
		r.txn(key, value)
	}
	r.start()
	r.want("/slash maint", "canary drain", "n ready", "web/a ready", "web/b hold rejected", "web/c 50%")
	data, err := os.ReadFile(r.cfg.State)
	if err != nil {
		t.Fatal(err)
	}
	f, err := statefile.Parse(bytes.Clone(data))
	if err != nil {
		t.Fatal(err)
	}
	if want := statefiletest.Format(f); !bytes.Equal(data, want) {
		t.Errorf("rendered:\n%s\nwant:\n%s", data, want)
	}
	if f.Root != "hadrain" || f.ID != idA || f.Host != "host-1" || len(f.Skipped) != 5 {
		t.Errorf("header %q and %d skipped keys, want root hadrain, id %s, host-1, 5", f.Header(), len(f.Skipped), idA)
	}
}

func TestRejectedValueKeepsTheLastAcrossRestarts(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	r.put("a", "dran")
	r.want("a drain rejected")
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	r.put("b", "up")
	r.start()
	r.want("a drain rejected", "b hold rejected")
	r.put("a", "ready")
	r.put("b", "50%")
	r.want("a ready", "b 50%")
}

// A read that brings nothing new touches the file and does not rewrite it.
func TestUnchangedStateIsNotRewritten(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(r.cfg.State)
	if err != nil {
		t.Fatal(err)
	}
	r.start()
	testpeer.WaitFor(t, "a newer modification time", func() (bool, string) {
		info, err := os.Stat(r.cfg.State)
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(info, before) {
			t.Fatal("the file was rewritten although nothing changed")
		}
		return info.ModTime().After(before.ModTime()), info.ModTime().String()
	})
}

// The index alone makes a new file: who waits for "applied" waits for it. A write
// and its reversal in one transaction leave nothing else to see.
func TestIndexIsNews(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	before, _, err := statefile.Load(r.cfg.State)
	if err != nil {
		t.Fatal(err)
	}
	ops := consulapi.TxnOps{
		{KV: &consulapi.KVTxnOp{Verb: consulapi.KVSet, Key: "hadrain/state/b", Value: []byte("drain")}},
		{KV: &consulapi.KVTxnOp{Verb: consulapi.KVDelete, Key: "hadrain/state/b"}},
	}
	if ok, answer, _, err := r.client.Txn().Txn(ops, nil); err != nil || !ok {
		t.Fatalf("writing and deleting b: %v, %+v", err, answer)
	}
	testpeer.WaitFor(t, "a higher index over the same keys", func() (bool, string) {
		f, _, err := statefile.Load(r.cfg.State)
		if err != nil {
			t.Fatal(err)
		}
		if f.Content() != before.Content() {
			t.Fatalf("the keys changed: %+v", f.Rows)
		}
		return f.Index > before.Index, f.Header()
	})
}

func TestPutBack(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	var took []time.Duration
	for name, harm := range map[string]func() error{
		"removed": func() error { return os.Remove(r.cfg.State) },
		"cut":     func() error { return os.Truncate(r.cfg.State, 20) },
		"forged": func() error {
			return statefile.Write(r.cfg.State, statefiletest.Format(&statefile.File{Head: statefile.Head{Root: "x"}}))
		},
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r.want("a drain")
		took = append(took, time.Since(start))
		r.wantLog("putting it back")
		if info, err := os.Stat(r.cfg.State); err != nil || info.Mode() != 0o644 {
			t.Errorf("%s and put back: %v, %v, want mode 0644", name, info, err)
		}
	}
	// Not by the poll alone, which takes a second. One may come when the machine
	// is busy.
	slices.Sort(took)
	if took[1] > time.Second/2 {
		t.Errorf("it was back after %v, want within half a second", took)
	}
}

func TestDirectoryGoneAndBack(t *testing.T) {
	r := newRig(t)
	r.cfg.State = filepath.Join(filepath.Dir(r.cfg.State), "dir", "state")
	if err := os.Mkdir(filepath.Dir(r.cfg.State), 0o755); err != nil {
		t.Fatal(err)
	}
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	// Removing it file by file would race with render, which puts them back.
	if err := os.Rename(filepath.Dir(r.cfg.State), filepath.Dir(r.cfg.State)+".gone"); err != nil {
		t.Fatal(err)
	}
	r.wantLog("the state file is not current")
	if err := os.Mkdir(filepath.Dir(r.cfg.State), 0o755); err != nil {
		t.Fatal(err)
	}
	r.want("a drain")
	r.wantLog("the state file is current again")
	// The lock has moved along.
	if _, err := statefile.Lock(r.cfg.State); !errors.Is(err, statefile.ErrLocked) {
		t.Errorf("Lock() = %v, want ErrLocked", err)
	}
}

func TestLossOfDataKeepsTheFile(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	if _, err := r.client.KV().DeleteTree("hadrain/", nil); err != nil {
		t.Fatal(err)
	}
	r.wantLog("reason=no_sentinel")
	r.want("a drain")
	// Other data in its place, under another id.
	r.put(".hadrain", kv.FormatSentinel(idB))
	r.wantLog("reason=wrong_sentinel")
	r.want("a drain")
	// hadrain init --id.
	r.put(".hadrain", kv.FormatSentinel(idA))
	r.wantLog("accepted again")
	r.want()
}

func TestOtherIDIsAcceptedByRemovingTheFile(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	r.put("a", "dran")
	r.put(".hadrain", kv.FormatSentinel(idB))
	r.wantLog("reason=wrong_sentinel")
	if err := os.Remove(r.cfg.State); err != nil {
		t.Fatal(err)
	}
	r.want("a hold rejected")
}

func TestOtherIDAtTheStart(t *testing.T) {
	r := newRig(t)
	r.start()
	r.want()
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	r.put(".hadrain", kv.FormatSentinel(idB))
	r.cfg.StartTimeout = time.Second
	r.start()
	if err := r.wait(); err == nil || !strings.Contains(err.Error(), kv.WrongSentinel) || !strings.Contains(err.Error(), "remove the state file") {
		t.Errorf("Run() = %v, want %s and what to do", err, kv.WrongSentinel)
	}
	r.want()
}

func TestUnusableFileAtTheStart(t *testing.T) {
	r := newRig(t)
	if err := os.WriteFile(r.cfg.State, []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	r.wantLog("not usable")
}

func TestNobodyThereAtTheStart(t *testing.T) {
	r := newRig(t)
	r.cfg.Consul.Address = "unix:///nonexistent/consul.sock"
	r.cfg.StartTimeout = 100 * time.Millisecond
	r.start()
	if err := r.wait(); err == nil || !strings.Contains(err.Error(), r.cfg.Consul.Address) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("Run() = %v, want the address and the reason", err)
	}
}

func TestSecondRenderIsRefused(t *testing.T) {
	r := newRig(t)
	r.start()
	r.want()
	taken := errors.New("the port is taken") // by the first one, if all flags are the same
	r.cfg.Listen = func() (net.Listener, error) { return nil, taken }
	err := render.Run(t.Context(), r.cfg, slog.New(slog.DiscardHandler))
	if !errors.Is(err, statefile.ErrLocked) {
		t.Errorf("Run() on a file in use = %v, want ErrLocked", err)
	}
	r.cfg.State = filepath.Join(t.TempDir(), "state")
	if err := render.Run(t.Context(), r.cfg, slog.New(slog.DiscardHandler)); !errors.Is(err, taken) {
		t.Errorf("Run() on a port in use = %v, want %v", err, taken)
	}
	if unlock, err := statefile.Lock(r.cfg.State); err != nil || unlock() != nil {
		t.Errorf("Lock() = %v, want that nobody holds it any more", err)
	}
}

// given returns l where a configuration wants a function that listens.
func given(l net.Listener) func() (net.Listener, error) {
	return func() (net.Listener, error) { return l, nil }
}

func TestHTTPAndNotify(t *testing.T) {
	r := newRig(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	r.cfg.Listen = given(l)
	r.cfg.Notify = func(s string) { mu.Lock(); defer mu.Unlock(); told = append(told, s) }
	ready := make(chan struct{})
	r.cfg.Ready = func() { close(ready) }
	r.delete(".hadrain")
	r.start()
	r.wantLog("reason=no_sentinel")
	base := "http://" + l.Addr().String()
	if code, body := fetch(t, base+"/readyz"); code != 503 || !strings.Contains(body, "hadrain init") {
		t.Errorf("/readyz before the first sync: %d %q, want 503 and what to do", code, body)
	}
	r.put("a", "dran")
	r.put("a b", "drain")
	r.put(".hadrain", kv.FormatSentinel(idA))
	<-ready
	if code, body := fetch(t, base+"/readyz"); code != 200 {
		t.Errorf("/readyz after the first sync: %d %q", code, body)
	}
	_, body := fetch(t, base+"/status.json")
	var status statusjson.Render
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Fatal(err)
	}
	if !status.Synced || status.ID != idA || status.Keys != 1 || len(status.Rejected) != 1 || len(status.Skipped) != 1 || status.Refused != nil {
		t.Errorf("status %+v", status)
	}
	_, body = fetch(t, base+"/")
	for _, text := range []string{"host-1", idA, "&#34;dran&#34;", "white space in the key"} {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q:\n%s", text, body)
		}
	}
	_, body = fetch(t, base+"/metrics")
	for _, line := range []string{
		`hadrain_render_keys 1`, `hadrain_render_rejected_keys 1`, `hadrain_render_skipped_keys 1`,
		`hadrain_render_reads_total{outcome="changed"} 1`, `hadrain_render_refused_reads_total{reason="no_sentinel"} `,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("/metrics lacks %q:\n%s", line, body)
		}
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v, %+v", err, problems)
	}
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	text := strings.Join(told, "\n")
	for _, want := range []string{"READY=1", "WATCHDOG=1\nSTATUS=1 key, index ", "STOPPING=1", "STATUS=no state yet; no_sentinel"} {
		if !strings.Contains(text, want) {
			t.Errorf("the service manager was not told %q:\n%s", want, text)
		}
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
