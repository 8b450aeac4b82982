package responder

import (
	"fmt"
	"os"
	"strings"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statusjson"
	"hadrain/internal/version"
)

// Name is the program's name, as it says it of itself.
const Name = "hadrain-responder"

// status makes the document for /status.json.
func (r *responder) status(now time.Time) statusjson.Responder {
	doc := statusjson.Responder{
		Program: statusjson.Program{
			Schema: statusjson.Schema, Program: Name, Version: version.String(), Host: r.host, Started: r.started,
		},
		State:    r.state(now),
		Rejected: []statusjson.Rejected{},
		Skipped:  []statusjson.Skipped{},
		Rows:     []statusjson.Row{},
		Unasked:  []string{},
	}
	asked := map[string]bool{}
	for _, l := range r.rows.list() {
		row := l.status()
		for _, key := range row.Keys {
			asked[key] = true
		}
		doc.Rows = append(doc.Rows, row)
	}
	if current := r.store.current.Load(); current != nil {
		describe(&doc, current, asked)
	}
	return doc
}

func (r *responder) state(now time.Time) statusjson.State {
	from := r.store.source.Load()
	s := statusjson.State{Path: r.store.path, Error: from.problem}
	current := r.store.current.Load()
	if current == nil {
		return s
	}
	s.Loaded = true
	s.Root, s.ID, s.Index = current.Root, current.ID, current.Index
	s.Rendered, s.Read = current.Rendered, from.read.UTC()
	s.Age = max(now.Sub(from.read), 0).Seconds() // the clock may have been put back
	s.Keys, s.Content = current.Len(), current.Content()
	return s
}

// summary is what a person wants to know first, in one line.
func (r *responder) summary(now time.Time) string {
	s := r.state(now)
	text := "no state yet, answering unsynced"
	if s.Loaded {
		text = fmt.Sprintf("%s, index %d, read from Consul %s ago", desired.Count(s.Keys, "key"), s.Index, max(now.Sub(s.Read), 0).Round(time.Second))
	}
	if s.Error != "" {
		text += "; " + s.Error
	}
	return desired.Printable(text)
}

// describe adds what the state file says.
func describe(doc *statusjson.Responder, t *statefile.Table, asked map[string]bool) {
	for row := range t.Rows() {
		if row.Rejected != "" {
			doc.Rejected = append(doc.Rejected, statusjson.Rejected{Key: row.Key, State: row.State.String(), Reason: row.Rejected})
		}
		if !asked[row.Key] {
			doc.Unasked = append(doc.Unasked, row.Key)
		}
	}
	for _, skipped := range t.Skipped {
		doc.Skipped = append(doc.Skipped, statusjson.Skipped{Key: desired.Printable(skipped.Key), Reason: skipped.Reason})
	}
}

func (l *listed) status() statusjson.Row {
	r := statusjson.Row{
		Row:      l.first,
		Keys:     l.keys(),
		Answer:   strings.TrimSuffix(l.reply, "\n"),
		Since:    l.since.UTC(),
		Asked:    l.asked.UTC(),
		Interval: l.interval.Seconds(),
		Index:    l.index,
		Silent:   l.silent,
	}
	if l.key >= 0 && l.key < len(r.Keys) {
		r.Key = r.Keys[l.key]
	}
	return r
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
