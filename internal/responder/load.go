package responder

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"hadrain/internal/statefile"
)

// A store holds the state that is served. One goroutine looks at the file;
// everybody reads what it found.
type store struct {
	path   string
	log    *slog.Logger
	reader *statefile.Reader
	last   problem // of the last look; empty text if there was none

	current  atomic.Pointer[statefile.Table] // nil until a good file was seen
	source   atomic.Pointer[source]          // never nil
	loads    atomic.Uint64                   // good files that were loaded
	failures atomic.Uint64                   // files that were refused
}

// source says where the state comes from and what is on disk now. It does not
// change.
type source struct {
	read    time.Time // render's last accepted read of Consul: the file's modification time
	problem string    // why the file on disk is not the one served; empty if it is
}

func newStore(path string, log *slog.Logger) *store {
	s := &store{path: path, log: log, reader: statefile.NewReader(path)}
	s.source.Store(&source{})
	return s
}

// follow looks at the file whenever it may have changed, until ctx ends. Each
// value from reload makes it read the file again even if it looks the same;
// before and after are called around that.
func (s *store) follow(ctx context.Context, reload <-chan os.Signal, before, after func()) {
	notices := statefile.Watch(ctx, s.path)
	for {
		select {
		case _, ok := <-notices:
			if !ok {
				return
			}
			s.look()
		case <-reload:
			before()
			s.reader = statefile.NewReader(s.path)
			s.look()
			after()
		}
	}
}

// A problem is why there is no good file, and the modification time of the bad
// one: another bad file is another problem.
type problem struct {
	text string
	at   time.Time
}

// look takes over the file if it is a new and good one. What was served before
// stays otherwise.
func (s *store) look() {
	table, read, err := s.reader.Look()
	now := *s.source.Load()
	if err != nil {
		if p := (problem{err.Error(), read}); p != s.last {
			s.refused(err)
			s.last = p
		}
		now.problem = s.last.text
	} else {
		if s.last.text != "" && s.current.Load() != nil {
			s.log.Info("state file is good again", "path", s.path)
		}
		s.last = problem{}
		now.read, now.problem = read, ""
	}
	if table != nil {
		s.swap(table)
	}
	s.source.Store(&now)
}

func (s *store) swap(next *statefile.Table) {
	last := s.current.Swap(next)
	s.loads.Add(1)
	if last == nil || !last.SameRows(next) {
		s.log.Info("state loaded", "path", s.path, "keys", next.Len(), "index", next.Index)
	}
}

func (s *store) refused(err error) {
	serving := "unsynced"
	if s.current.Load() != nil {
		serving = "the last good state"
	}
	if errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("no state file; is hadrain-render running?", "path", s.path, "answering", serving)
		return
	}
	s.failures.Add(1)
	s.log.Error("state file refused", "error", err, "answering", serving)
}
