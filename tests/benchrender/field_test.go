package benchrender_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/testpeer"
)

// pause is longer than render's quiet time, so that no change waits for it.
const pause = 300 * time.Millisecond

// A field is a Consul with many keys, and where files are made of them.
type field struct {
	b      *testing.B
	keys   int
	consul *testpeer.ConsulServer
	kv     *consulapi.KV
	dir    string
	events *fsnotify.Watcher

	changes int
	wrote   time.Time // begin of the last write

	render, write float64 // of hadrain-render, in ms; means over its last process
}

// A subject is a program that makes a file of the keys.
type subject struct {
	name    string
	path    string
	command func() *exec.Cmd
	finish  func() // called before it is ended; nil: nothing
	samples []sample
}

func newField(b *testing.B, keys int) *field {
	b.Helper()
	f := &field{b: b, keys: keys, dir: testpeer.Dir(b)}
	f.consul = testpeer.Consul(b, testpeer.ConsulConfig{})
	client := f.consul.Client(b)
	f.kv = client.KV()
	const perTxn = 64
	ops := consulapi.TxnOps{set(".hadrain", "v1 id=6f1c2b7e-0000-4000-8000-000000000001")}
	for i := range keys {
		ops = append(ops, set(key(i), value("chg-123 canary deploy")))
		if len(ops) == perTxn || i == keys-1 {
			if ok, answer, _, err := client.Txn().Txn(ops, nil); err != nil || !ok {
				b.Fatalf("filling Consul: %v, %+v", err, answer)
			}
			ops = nil
		}
	}
	var err error
	if f.events, err = fsnotify.NewWatcher(); err == nil {
		err = f.events.Add(f.dir)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.events.Close() })
	return f
}

func set(key, value string) *consulapi.TxnOp {
	return &consulapi.TxnOp{KV: &consulapi.KVTxnOp{Verb: consulapi.KVSet, Key: "hadrain/state/" + key, Value: []byte(value)}}
}

func key(i int) string { return fmt.Sprintf("web/server-%06d", i) }

func value(reason string) string {
	return fmt.Sprintf("drain # by=alice at=2026-09-09T12:00:02Z reason=%q", reason)
}

func (f *field) hadrain() *subject {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.b.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	s := &subject{name: "hadrain", path: filepath.Join(f.dir, "state")}
	binary := testpeer.BuildPlain(f.b, "hadrain-render")
	s.command = func() *exec.Cmd {
		return exec.Command(binary, "--consul-addr", f.consul.Addr(), "--state", s.path, "--http.listen", address)
	}
	s.finish = func() { f.scrape("http://" + address + "/metrics") }
	return s
}

// stock is consul-template as it comes, with a template that makes the same lines.
func (f *field) stock() *subject {
	f.b.Helper()
	s := &subject{name: "stock", path: filepath.Join(f.dir, "stock")}
	source := filepath.Join(testpeer.Dir(f.b), "stock.tmpl")
	text := `{{ range tree "hadrain/state/" }}{{ .Key }}  {{ .Value }}` + "\n{{ end }}"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		f.b.Fatal(err)
	}
	root := testpeer.Root(f.b)
	binary := filepath.Join(root, ".ci", "cache", "test-bin", "consul-template")
	build := exec.Command("go", "build", "-buildvcs=false", "-modfile=.ci/consul-template.mod", "-o", binary, "github.com/hashicorp/consul-template")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped, and so is ours
	if out, err := build.CombinedOutput(); err != nil {
		f.b.Fatalf("building consul-template: %v\n%s", err, out)
	}
	s.command = func() *exec.Cmd {
		return exec.Command(binary, "-log-level", "err", "-consul-addr", f.consul.Addr(), "-template", source+":"+s.path)
	}
	return s
}

// change writes one key, and returns what a file then holds.
func (f *field) change() (note string) {
	f.b.Helper()
	f.changes++
	note = fmt.Sprintf("change-%d.", f.changes)
	f.wrote = time.Now()
	if _, err := f.kv.Put(&consulapi.KVPair{Key: "hadrain/state/" + key(f.keys/2), Value: []byte(value(note))}, nil); err != nil {
		f.b.Fatal(err)
	}
	return note
}

// awaitFile returns when the file of s was replaced by one that holds note.
func (f *field) awaitFile(s *subject, p *testpeer.Process, note string) time.Time {
	f.b.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case e := <-f.events.Events:
			at := time.Now()
			if e.Name != s.path || !e.Has(fsnotify.Create) {
				continue
			}
			if data, err := os.ReadFile(s.path); err == nil && bytes.Contains(data, []byte(note)) {
				return at
			}
		case <-p.Done():
			f.b.Fatalf("%s ended:\n%s", s.name, p.Output())
		case <-limit:
			f.b.Fatalf("%s did not write %q:\n%s", s.name, note, p.Output())
		}
	}
}

// readOnce returns how long one answer of Consul takes, decoded.
func (f *field) readOnce() time.Duration {
	f.b.Helper()
	var took []time.Duration
	for range 3 {
		start := time.Now()
		if _, _, err := f.kv.List("hadrain/state/", &consulapi.QueryOptions{RequireConsistent: true}); err != nil {
			f.b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	return median(took)
}

// scrape takes the parts of the time from the metrics.
func (f *field) scrape(url string) {
	f.b.Helper()
	resp, err := http.Get(url)
	if err != nil {
		f.b.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		f.b.Fatal(err)
	}
	mean := func(name string) float64 {
		return 1000 * number(f.b, string(body), "hadrain_render_"+name+"_seconds_sum") / number(f.b, string(body), "hadrain_render_"+name+"_seconds_count")
	}
	f.render, f.write = mean("render_duration"), mean("write_duration")
}

func number(b *testing.B, text, name string) float64 {
	b.Helper()
	_, rest, _ := strings.Cut("\n"+text, "\n"+name+" ")
	word, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(word, 64)
	if err != nil {
		b.Fatalf("metric %s: %v", name, err)
	}
	return n
}

// syncDirectory measures the one thing that stock consul-template leaves out.
func (f *field) syncDirectory() time.Duration {
	f.b.Helper()
	dir, err := os.Open(f.dir)
	if err != nil {
		f.b.Fatal(err)
	}
	defer dir.Close()
	var took []time.Duration
	for i := range 9 {
		name := filepath.Join(f.dir, fmt.Sprintf("sync-%d", i))
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			f.b.Fatal(err)
		}
		start := time.Now()
		if err := dir.Sync(); err != nil {
			f.b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	return median(took)
}
