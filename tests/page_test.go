package tests_test

import (
	"context"
	"fmt"
	"image/png"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/responder"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/testpeer"
)

// TestPageInBrowser opens the responder's page as a phone and as a desk would,
// and keeps what they show (go test -artifacts).
func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	browser := testpeer.Need(t, "chromium")
	url := servePage(t)
	for name, width := range map[string]int{"phone": 390, "desk": 1280} {
		for _, dark := range []bool{false, true} {
			shot := filepath.Join(t.ArtifactDir(), fmt.Sprintf("page-%s-dark-%v.png", name, dark))
			dom := browse(t, browser, url, width, dark, shot)
			for _, want := range []string{"web/web-07", "drain 100%", "Rejected values: 1", "ready 50%"} {
				if !strings.Contains(dom, want) {
					t.Errorf("%s: the page lacks %q", name, want)
				}
			}
			checkShot(t, shot)
		}
	}
}

// servePage starts a responder with something to show and returns the page's URL.
func servePage(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state")
	f := &statefile.File{Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: 4711, Host: "lb-1", Rendered: time.Now().UTC()}}
	for _, kv := range [][2]string{
		{"canary", `drain # by=alice reason="chg-123"`}, {"elsewhere/web-01", "maint"}, {"web/web-07", "dran"}, {"web/web-08", "50%"},
	} {
		f.Rows = append(f.Rows, desired.Accept(kv[0], kv[1], desired.Row{Key: kv[0], State: desired.Drain}, kv[0] == "web/web-07"))
	}
	if err := statefile.Write(path, statefiletest.Format(f)); err != nil {
		t.Fatal(err)
	}
	agent, web := listen(t), listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- responder.Run(ctx, responder.Config{State: path, Agent: []net.Listener{agent}, HTTP: []net.Listener{web}},
			slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("responder: %v", err)
		}
	})
	for _, row := range []string{"web/web-07 canary", "web/web-08 canary", "web/gke-cny-web canary", "api/api-01", "api/api-02"} {
		question(t, agent.Addr().String(), row)
	}
	http.DefaultClient.CloseIdleConnections()
	return "http://" + web.Addr().String() + "/"
}

// question asks one agent check and drops the answer.
func question(t *testing.T, addr, row string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, row+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
}

// browse returns the document as the browser has it, and saves a screenshot. A
// complaint of the browser about what the page may not load is an error.
func browse(t *testing.T, browser, url string, width int, dark bool, shot string) string {
	t.Helper()
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--enable-logging=stderr", "--v=0",
		"--user-data-dir=" + testpeer.Dir(t), fmt.Sprintf("--window-size=%d,900", width), "--screenshot=" + shot, "--dump-dom",
	}
	if dark {
		args = append(args, "--blink-settings=preferredColorScheme=0")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*testpeer.Timeout(t))
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, append(args, url+"?refresh=0")...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, stderr.String())
	}
	for line := range strings.Lines(stderr.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the browser complains: %s", line)
		}
	}
	return string(dom)
}

func checkShot(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Errorf("screenshot %s: %v", path, err)
	}
}
