package render

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"html/template"
	"net/http"
	"time"

	"hadrain/internal/statusjson"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// mostShown bounds the tables of the page.
const mostShown = 300

var page = template.Must(template.New("page").Funcs(template.FuncMap{"stamp": stamp}).Parse(pageText))

// view is what the page shows.
type view struct {
	Doc               statusjson.Render
	Accepted, Contact string
	Rejected          []statusjson.Rejected
	Skipped           []statusjson.Skipped
	Style             template.CSS
}

// servePage answers "/", for people.
func (l *loop) servePage(w http.ResponseWriter, _ *http.Request) {
	doc := l.document()
	v := view{
		Doc: doc, Style: template.CSS(pageStyle),
		Accepted: ago(doc.LastAccepted), Contact: ago(doc.LastContact),
		Rejected: doc.Rejected[:min(len(doc.Rejected), mostShown)],
		Skipped:  doc.Skipped[:min(len(doc.Skipped), mostShown)],
	}
	var b bytes.Buffer
	if err := page.Execute(&b, v); err != nil {
		http.Error(w, "rendering the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256([]byte(pageStyle))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	// This very style sheet, and nothing else, is loaded or run.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; frame-ancestors 'none'")
	_, _ = w.Write(b.Bytes()) // the peer may be gone
}

func ago(t time.Time) string {
	if t.IsZero() {
		return "none yet"
	}
	return time.Since(t).Round(time.Second).String() + " ago"
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
