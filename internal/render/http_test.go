package render_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"hadrain/internal/kv"
	"hadrain/internal/statusjson"
)

func TestHTTPAndNotify(t *testing.T) {
	r := newRig(t)
	base := r.serve()
	var mu sync.Mutex
	var told []string
	r.cfg.Notify = func(s string) { mu.Lock(); defer mu.Unlock(); told = append(told, s) }
	ready := make(chan struct{})
	r.cfg.Ready = func() { close(ready) }
	r.delete(".hadrain")
	r.start()
	r.wantLog("reason=no_sentinel")
	if code, body := fetch(t, base+"/readyz"); code != 503 || !strings.Contains(body, "hadrain init") {
		t.Errorf("/readyz before the first sync: %d %q, want 503 and what to do", code, body)
	}
	r.put("a", "dran")
	r.put("a b", "drain")
	r.put(".hadrain", kv.FormatSentinel(idA))
	wantClosed(t, "ready", ready)
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

// What a healed disk brings shows at once, not with the next read, which may be
// seconds away.
func TestHealedDiskShowsAtOnce(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "lib")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.cfg.State = filepath.Join(dir, "state")
	base, ready := r.serve(), make(chan struct{})
	r.cfg.Ready = func() { close(ready) }
	r.delete(".hadrain")
	r.start()
	r.wantLog("reason=no_sentinel")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	r.put(".hadrain", kv.FormatSentinel(idA))
	r.wantLog("the state file is not current")
	if code, body := fetch(t, base+"/readyz"); code != 503 || !strings.Contains(body, dir) {
		t.Errorf("/readyz without a directory: %d %q, want 503 and its name", code, body)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	wantClosed(t, "ready", ready)
	_, body := fetch(t, base+"/metrics")
	if !strings.Contains(body, `hadrain_render_reads_total{outcome="unchanged"} 0`) {
		t.Errorf("ready with another read only:\n%s", body)
	}
}
