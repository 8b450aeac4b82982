package responder

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
)

// The file of before the clock was put back is not younger than new.
func TestClockPutBack(t *testing.T) {
	c := newClock()
	r := &responder{store: newStore("state", slog.New(slog.DiscardHandler)), rows: newRows(1)}
	r.store.swap(table(t, &statefile.File{Head: statefile.Head{Rendered: c.now()}}))
	r.store.source.Store(&source{read: c.now().Add(time.Hour)})
	if age := r.status(c.now()).State.Age; age != 0 {
		t.Errorf("age %v", age)
	}
	if text := r.summary(c.now()); !strings.Contains(text, "read from Consul 0s ago") {
		t.Errorf("summary %q", text)
	}
}

func TestSummaryOfOneKey(t *testing.T) {
	c := newClock()
	r := &responder{store: newStore("state", slog.New(slog.DiscardHandler)), rows: newRows(1)}
	r.store.swap(table(t, &statefile.File{Head: statefile.Head{Rendered: c.now()}, Rows: []desired.Row{{Key: "a", State: desired.Drain}}}))
	r.store.source.Store(&source{read: c.now()})
	if text := r.summary(c.now()); !strings.HasPrefix(text, "1 key, index ") {
		t.Errorf("summary %q", text)
	}
}
