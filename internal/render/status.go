package render

import (
	"errors"
	"fmt"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
	"hadrain/internal/statefile"
	"hadrain/internal/statusjson"
	"hadrain/internal/version"
)

// newStatus returns the document of a render that has done nothing yet.
func newStatus(cfg *Config, host string) *statusjson.Render {
	return &statusjson.Render{
		Program: statusjson.Program{
			Schema: statusjson.Schema, Program: "hadrain-render", Version: version.String(),
			Host: host, Started: time.Now().UTC().Truncate(time.Second),
		},
		Consul: cfg.Consul.Shown(), Root: cfg.Root, Path: cfg.State,
		Rejected: []statusjson.Rejected{}, Skipped: []statusjson.Skipped{}, Templates: []statusjson.Template{},
	}
}

// show makes the state as it is now visible to HTTP and to Prometheus.
func (l *loop) show(health kv.Health) {
	status := *l.status.Load()
	status.Synced = l.synced
	status.LastContact, status.LastAccepted = health.Contact.UTC(), l.accepted.UTC()
	status.WriteError = l.trouble
	status.Refused = nil
	if f := health.Failure; f != nil {
		status.Refused = &statusjson.Refused{Reason: f.Reason, Message: f.Message, Since: health.Since.UTC()}
	}
	if l.file != nil && l.file != l.published {
		fill(&status, l.file)
		l.published = l.file
		l.metrics.setFile(l.file)
	}
	l.status.Store(&status)
	l.metrics.setTimes(health.Contact, l.accepted)
}

// tell says what is shown to the service manager, behind other assignments, each
// with its newline.
func (l *loop) tell(others string) {
	l.cfg.Notify(others + "STATUS=" + summary(l.status.Load()))
	if l.synced && !l.told {
		l.told = true
		l.cfg.Notify("READY=1")
		l.cfg.Ready()
	}
}

// fill sets what depends on the file alone.
func fill(status *statusjson.Render, f *statefile.File) {
	status.ID, status.Index, status.Keys, status.Content = f.ID, f.Index, len(f.Rows), f.Content()
	status.Rejected = []statusjson.Rejected{}
	for _, row := range f.Rows {
		if row.Rejected != "" {
			status.Rejected = append(status.Rejected, statusjson.Rejected{Key: row.Key, State: row.State.String(), Reason: row.Rejected})
		}
	}
	status.Skipped = []statusjson.Skipped{}
	for _, s := range f.Skipped {
		status.Skipped = append(status.Skipped, statusjson.Skipped{Key: desired.Printable(s.Key), Reason: s.Reason})
	}
}

// summary is the line that systemctl status shows.
func summary(s *statusjson.Render) string {
	text := "no state yet"
	if !s.LastAccepted.IsZero() {
		text = fmt.Sprintf("%s, index %d, read from Consul %s ago", desired.Count(s.Keys, "key"), s.Index, time.Since(s.LastAccepted).Round(time.Second))
	}
	if s.Refused != nil {
		text += "; " + s.Refused.Reason + ": " + s.Refused.Message
	}
	if s.WriteError != "" {
		text += "; " + s.WriteError
	}
	return desired.Printable(text)
}

// ready returns nil once the first accepted read was installed, else what it
// waits for.
func (l *loop) ready() error {
	status := l.status.Load()
	switch {
	case status.Synced:
		return nil
	case status.WriteError != "":
		return errors.New(status.WriteError)
	case status.Refused != nil:
		return errors.New(status.Refused.Message)
	}
	return errors.New("no accepted read of Consul yet")
}

// document returns what /status.json shows now.
func (l *loop) document() statusjson.Render {
	status := *l.status.Load()
	appliers := l.templates()
	status.Templates = make([]statusjson.Template, len(appliers))
	for i, a := range appliers {
		status.Templates[i] = *a.status.Load()
	}
	return status
}
