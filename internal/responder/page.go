package responder

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"hadrain/internal/statusjson"
)

//go:embed page.css
var style string

//go:embed page.html
var pageText string

const (
	// mostRows and mostUnasked bound the page: 100,000 rows help nobody.
	mostRows    = 1000
	mostUnasked = 300
	// refreshEvery is in seconds.
	refreshEvery = 10
	// old is the age from which on a person should worry: render touches the
	// file at every accepted read, every ten seconds or so.
	old = time.Minute
)

var (
	page = template.Must(template.New("page").Funcs(template.FuncMap{"ago": ago, "stamp": stamp}).Parse(pageText))
	// policy allows this very style sheet and nothing else to be loaded or run.
	policy = contentPolicy(style)
)

func contentPolicy(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// A view is what the template shows.
type view struct {
	Doc      statusjson.Responder
	State    statusjson.State
	Host     string
	Now      time.Time
	Age      string
	Old      bool
	Style    template.CSS
	Refresh  int // in seconds; 0: it does not
	Query    string
	Rows     []viewRow // the first of those that match
	Matching int
	Silent   int
	Unasked  []string
}

// A viewRow is one row of the table.
type viewRow struct {
	statusjson.Row
	Others string // the keys behind the first
	Class  string // of the answer, for its colour
}

func newView(doc statusjson.Responder, now time.Time, query string, refresh bool) view {
	v := view{
		Doc: doc, State: doc.State, Host: doc.Host, Now: now, Style: template.CSS(style), Query: query,
		Unasked: doc.Unasked[:min(len(doc.Unasked), mostUnasked)],
	}
	if doc.State.Loaded {
		v.Age = ago(now, doc.State.Read)
		v.Old = now.Sub(doc.State.Read) > old
	}
	if refresh {
		v.Refresh = refreshEvery
	}
	for _, row := range doc.Rows {
		v.add(row)
	}
	return v
}

func (v *view) add(row statusjson.Row) {
	if row.Silent {
		v.Silent++
	}
	text := strings.ToLower(strings.Join(row.Keys, " ") + " " + row.Answer)
	if !strings.Contains(text, strings.ToLower(v.Query)) {
		return
	}
	v.Matching++
	if len(v.Rows) < mostRows {
		v.Rows = append(v.Rows, viewRow{Row: row, Others: strings.Join(row.Keys[min(1, len(row.Keys)):], " "), Class: class(row.Answer)})
	}
}

// class returns the first word of an answer, not counting "up"; a weight is
// "weight".
func class(answer string) string {
	word, rest, _ := strings.Cut(strings.TrimPrefix(answer, "up "), " ")
	if word == "ready" && rest != "" && rest != "100%" {
		return "weight"
	}
	return word
}

// ago returns the time between two moments as people say it, to two units.
func ago(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// page serves "/": ?q= filters, ?refresh=0 stands still.
func (r *responder) page(now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		at := now()
		var b bytes.Buffer
		if err := page.Execute(&b, newView(r.status(at), at, req.FormValue("q"), req.FormValue("refresh") != "0")); err != nil {
			http.Error(w, "rendering the page: "+err.Error(), http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		_, _ = w.Write(b.Bytes()) // the peer may be gone; there is nobody to tell
	})
}
