package render_test

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"hadrain/internal/kv"
	"hadrain/internal/testpeer"
)

func (r *rig) reload(signals chan os.Signal) {
	r.t.Helper()
	signals <- syscall.SIGHUP
}

func TestReloadTemplates(t *testing.T) {
	r := newRig(t)
	signals := make(chan os.Signal)
	r.cfg.Reload = signals
	base := r.serve()
	var mu sync.Mutex
	var told []string
	r.cfg.Notify = func(s string) { mu.Lock(); defer mu.Unlock(); told = append(told, s) }
	out := r.template(`one {{ desired "a" }}`, "")
	source := r.cfg.Templates[0].Source
	edit := func(text string) {
		t.Helper()
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r.reload(signals)
	}
	r.put("a", "drain")
	r.start()
	wantFile(t, out, "one drain")
	edit(`two {{ desired "a" }}`)
	wantFile(t, out, "two drain")

	// A mistake leaves the template that was, for later changes too.
	edit("three\n{{ desired }")
	r.wantLog("source.tmpl:2")
	r.put("a", "maint")
	wantFile(t, out, "two maint")
	_, body := fetch(t, base+"/status.json")
	if !strings.Contains(body, "source.tmpl:2") {
		t.Errorf("the status does not say that the template cannot be used:\n%s", body)
	}
	_, body = fetch(t, base+"/metrics")
	for _, want := range []string{
		`hadrain_render_reloads_total{outcome="done"} 1`, `hadrain_render_reloads_total{outcome="failed"} 1`,
		`hadrain_render_template_failures_total{destination="` + out + `",template="` + source + `"} 1`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %s:\n%s", want, body)
		}
	}

	edit(`four {{ desired "a" }}`)
	wantFile(t, out, "four maint")
	if _, body = fetch(t, base+"/status.json"); strings.Contains(body, "source.tmpl:2") {
		t.Errorf("the mistake is still shown:\n%s", body)
	}
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	var kept []string
	for _, s := range told {
		if first, _, _ := strings.Cut(s, "="); first != "WATCHDOG" {
			kept = append(kept, first)
		}
		if strings.HasPrefix(s, "RELOADING=1") && !strings.HasPrefix(s, "RELOADING=1\nMONOTONIC_USEC=") {
			t.Errorf("told %q, want the time, too", s)
		}
	}
	if got, want := strings.Join(kept, " "), "READY RELOADING READY RELOADING READY RELOADING READY STOPPING"; got != want {
		t.Errorf("the service manager was told %s, want %s", got, want)
	}
}

// Before the first accepted read READY=1 would be a lie.
func TestReloadBeforeTheFirstRead(t *testing.T) {
	r := newRig(t)
	signals := make(chan os.Signal)
	r.cfg.Reload = signals
	told := make(chan string, 100)
	r.cfg.Notify = func(s string) { told <- s }
	r.delete(".hadrain")
	r.start()
	r.wantLog("reason=no_sentinel")
	r.reload(signals)
	r.wantLog("reloaded")
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	close(told)
	for s := range told {
		if strings.HasPrefix(s, "READY") || strings.HasPrefix(s, "RELOADING") {
			t.Errorf("told %q before the first read", s)
		}
	}
}

// A new authority is used without a restart; one that cannot be read leaves the
// old one in use.
func TestReloadAuthority(t *testing.T) {
	r := newRig(t)
	signals := make(chan os.Signal)
	r.cfg.Reload = signals
	plain, err := url.Parse(r.cfg.Consul.Address)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(plain))
	t.Cleanup(front.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	right := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(ca, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(testpeer.NewAuthority(t).PEM())
	r.cfg.Consul = kv.Config{Address: front.URL, CAFile: ca}
	r.put("a", "drain")
	r.start()
	r.wantLog("certificate")
	write([]byte("nonsense"))
	r.reload(signals)
	r.wantLog("the certificates before stay in use")
	write(right)
	r.reload(signals)
	r.want("a drain")
}
