package responder_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"hadrain/internal/agentcheck"
	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

// served is a responder with a state and rows that were asked for.
func served(t *testing.T) *daemon {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state")
	f := state(4711, "canary", "drain", "web/b", "dran", "web/c", "50%", "web/z", "ready")
	f.Skipped = []statefile.Skipped{{Key: "web/a b", Reason: "white space in the key"}}
	if err := statefile.Write(path, statefiletest.Format(f)); err != nil {
		t.Fatal(err)
	}
	d := start(t, path, nil)
	for _, q := range []string{"web/a canary", "web/b nobody", "web/c canary", "<script>alert(1)</script> canary", "no", "-bad"} {
		d.ask(t, q)
	}
	return d
}

func TestStatus(t *testing.T) {
	d := served(t)
	doc := d.status(t)
	if s := doc.State; !s.Loaded || s.Index != 4711 || s.Keys != 4 || s.Root != "hadrain" || s.Age < 0 || s.Age > 60 || s.Error != "" {
		t.Errorf("state = %+v", s)
	}
	var rows []string
	for _, r := range doc.Rows {
		rows = append(rows, r.Row+"|"+r.Key+"|"+r.Answer)
	}
	want := []string{
		"<script>alert(1)</script>|canary|drain 100%", "no||ready 100%",
		"web/a|canary|drain 100%", "web/b|web/b|hold", "web/c|web/c|ready 50%",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows = %q, want %q", rows, want)
	}
	if len(doc.Rejected) != 1 || doc.Rejected[0].Key != "web/b" || doc.Rejected[0].State != "hold" {
		t.Errorf("rejected = %+v", doc.Rejected)
	}
	if len(doc.Skipped) != 1 || !slices.Equal(doc.Unasked, []string{"web/z"}) {
		t.Errorf("skipped = %+v, unasked = %q", doc.Skipped, doc.Unasked)
	}
}

func TestMetrics(t *testing.T) {
	d := served(t)
	_, body := d.get(t, "/metrics")
	for _, want := range []string{
		`hadrain_responder_checks_total{answer="drain"} 2`,
		`hadrain_responder_checks_total{answer="hold"} 1`,
		`hadrain_responder_checks_total{answer="weight"} 1`,
		`hadrain_responder_checks_total{answer="refused"} 1`,
		`hadrain_responder_checks_total{answer="unsynced"} 0`,
		`hadrain_responder_connections_total 6`,
		`hadrain_responder_check_duration_seconds_count 6`,
		`hadrain_responder_rows 5`,
		`hadrain_responder_silent_rows 0`,
		`hadrain_responder_unasked_keys 1`,
		`hadrain_responder_state_loaded 1`,
		`hadrain_responder_state_index 4711`,
		`hadrain_responder_state_keys 4`,
		`hadrain_responder_state_rejected_keys 1`,
		`hadrain_responder_state_loads_total 1`,
		`hadrain_responder_unanswered_total{reason="silent"} 0`,
	} {
		if !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "hadrain_") {
			t.Errorf("promlint: %s: %s", p.Metric, p.Text)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

// What is no question is counted, by whichever way it is read.
func TestRefusedQuestionsAreCounted(t *testing.T) {
	d := start(t, filepath.Join(t.TempDir(), "state"), nil)
	for _, q := range []string{"", "-bad", strings.Repeat("k ", agentcheck.MaxKeys+1), strings.Repeat("k", 3*agentcheck.MaxQuestion)} {
		// Most of the last is not read, so that the answer may be lost in a reset.
		if got, err := ask(d.agent, q); got != "refused" && err == nil {
			t.Errorf("%.40q: %q, want refused", q, got)
		}
	}
	if got := d.ask(t, strings.Repeat("k", agentcheck.MaxQuestion-1)); got != "unsynced" {
		t.Errorf("the longest question: %q, want unsynced", got)
	}
	d.waitMetric(t, `hadrain_responder_checks_total{answer="refused"} 4`)
	d.waitMetric(t, `hadrain_responder_checks_total{answer="unsynced"} 1`)
}

func TestPage(t *testing.T) {
	d := served(t)
	resp, err := http.Get(d.http + "/?q=CANARY")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("Content-Security-Policy: %s", policy)
	}
	for path, want := range map[string][]string{
		"/": {
			">Rows: 5 of 5<", `>web/a</td>`, `class="drain">drain 100%<`, `class="weight">ready 50%<`, ">Rejected values: 1<", "dran",
			"white space in the key", "<code>web/z</code>", `<meta http-equiv="refresh"`, `id="index">4711<`,
		},
		"/?q=DRAIN":        {">Rows: 2 of 5<", `value="DRAIN"`},
		"/?q=nothing":      {">Rows: 0 of 5<", "No row matches."},
		`/?q="><script>`:   {`value="&#34;&gt;&lt;script&gt;"`},
		"/?refresh=0&q=no": {"refresh by itself", "q=no"},
	} {
		code, body := d.get(t, strings.ReplaceAll(path, `"`, "%22"))
		if code != 200 {
			t.Errorf("%s: %d", path, code)
		}
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s lacks %s:\n%s", path, text, body)
			}
		}
		for _, text := range []string{"<script", "ZgotmplZ", "http://", "https://"} {
			if strings.Contains(body, text) {
				t.Errorf("%s contains %s", path, text)
			}
		}
	}
}

// Nobody who writes to Consul or asks on the agent's port draws on the screen of
// those who look: neither with the terminal's escape sequences nor by turning
// the text around.
func TestNothingUnprintableIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	f := state(1, "canary", "drain # \x1b[31mnote\u202e", "web/b", "dr\x1b\u202ean")
	f.Skipped = []statefile.Skipped{{Key: "\x1b[31mred\u202e", Reason: "control character in the key"}}
	write(t, path, f)
	long := "web/" + strings.Repeat("l", desired.MaxKey-4)
	d := start(t, path, nil)
	d.ask(t, "web/a \x1b[31mgroup\u202e \xff "+long+" canary")
	d.ask(t, "\x1b[31mrow\u202e canary")
	if row := d.status(t).Rows[0]; !slices.Equal(row.Keys, []string{"web/a", `\x1b[31mgroup\u202e`, `\xff`, long, "canary"}) || row.Key != "canary" {
		t.Errorf("row = %+v", row)
	}
	for path, escaped := range map[string]string{"/": `\`, "/status.json": `\\`, "/metrics": ""} {
		_, body := d.get(t, path)
		for _, text := range []string{"\x1b", `\u001b[`, "\u202e", "\xff", "\ufffd"} {
			if at := strings.Index(body, text); at >= 0 && !strings.HasSuffix(body[:at], `\`) {
				t.Errorf("%s contains %q:\n%s", path, text, body)
			}
		}
		if n := strings.Count(body, escaped+"x1b["); path != "/metrics" && n < 2 {
			t.Errorf("%s shows %d escaped sequences, want that of the skipped key and that of the group:\n%s", path, n, body)
		}
	}
	for _, text := range []string{"\x1b", "\u202e", "\xff"} {
		if strings.Contains(d.log.String(), text) {
			t.Errorf("the log contains %q", text)
		}
	}
}

func TestPageWithoutState(t *testing.T) {
	d := start(t, filepath.Join(t.TempDir(), "state"), nil)
	if _, body := d.get(t, "/"); !strings.Contains(body, "No state yet.") || !strings.Contains(body, "no such file") {
		t.Errorf("page without a state:\n%s", body)
	}
}
