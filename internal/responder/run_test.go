package responder_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hadrain/internal/desired"
	"hadrain/internal/responder"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/statusjson"
	"hadrain/internal/testpeer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A daemon is a responder in this process.
type daemon struct {
	path, agent, http string
	log               *testpeer.Output
	hup               chan os.Signal
	stop              func()
}

// start runs a responder until the test ends. edit may change its configuration.
func start(t *testing.T, path string, edit func(*responder.Config)) *daemon {
	t.Helper()
	d := &daemon{path: path, log: &testpeer.Output{}, hup: make(chan os.Signal, 1)}
	cfg := responder.Config{
		State: path, Agent: []net.Listener{listen(t)}, HTTP: []net.Listener{listen(t)}, Reload: d.hup,
	}
	d.agent, d.http = cfg.Agent[0].Addr().String(), "http://"+cfg.HTTP[0].Addr().String()
	if edit != nil {
		edit(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- responder.Run(ctx, cfg, slog.New(slog.NewTextHandler(d.log, nil))) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		d.stop()
		if t.Failed() {
			t.Logf("log:\n%s", d.log)
		}
	})
	return d
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (d *daemon) ask(t *testing.T, question string) string {
	t.Helper()
	reply, err := ask(d.agent, question)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// ask returns the reply without its newline.
func ask(addr, question string) (string, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, question+"\n"); err != nil {
		return "", err
	}
	reply, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSuffix(reply, "\n"), err
}

// waitAnswer asks until the answer is want.
func (d *daemon) waitAnswer(t *testing.T, question, want string) {
	t.Helper()
	testpeer.WaitFor(t, question+" to be answered "+want, func() (bool, string) {
		got := d.ask(t, question)
		return got == want, got
	})
}

func (d *daemon) get(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := http.Get(d.http + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func (d *daemon) status(t *testing.T) statusjson.Responder {
	t.Helper()
	var doc statusjson.Responder
	_, body := d.get(t, "/status.json")
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatalf("status.json: %v\n%s", err, body)
	}
	return doc
}

// state returns a file with the given pairs of key and state.
func state(index uint64, pairs ...string) *statefile.File {
	f := &statefile.File{
		Head: statefile.Head{
			Root: "hadrain", ID: "6f1c", Index: index, Host: "lb-1",
			Rendered: time.Date(2026, 9, 9, 12, 0, 3, 0, time.UTC),
		},
	}
	for i := 0; i < len(pairs); i += 2 {
		row := desired.Accept(pairs[i], pairs[i+1], desired.Row{}, false)
		f.Rows = append(f.Rows, row)
	}
	return f
}

func write(t *testing.T, path string, f *statefile.File) {
	t.Helper()
	if err := statefile.Write(path, statefiletest.Format(f)); err != nil {
		t.Fatal(err)
	}
}

func TestFollowsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d := start(t, path, nil)
	if got := d.ask(t, "web/a canary"); got != "unsynced" {
		t.Errorf("without a file: %q, want unsynced", got)
	}
	if code, _ := d.get(t, "/readyz"); code != 503 {
		t.Errorf("/readyz without a file: %d, want 503", code)
	}
	write(t, path, state(1, "canary", "drain"))
	d.waitAnswer(t, "web/a canary", "drain 100%")
	if code, _ := d.get(t, "/readyz"); code != 200 {
		t.Errorf("/readyz with a state: %d, want 200", code)
	}
	write(t, path, state(2, "canary", "drain", "web/a", "50%"))
	d.waitAnswer(t, "web/a canary", "ready 50%")
	if got := d.ask(t, "web/b canary"); got != "drain 100%" {
		t.Errorf("web/b: %q, want drain 100%%", got)
	}
}
