package responder

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"

	"hadrain/internal/statefile"
)

// A store holds the state that is served. One goroutine looks at the file;
// everybody reads what it found.
type store struct {
	path   string
	log    *slog.Logger
	reader *statefile.Reader
	last   error // of the last look

	current  atomic.Pointer[snapshot] // nil until a good file was seen
	source   atomic.Pointer[source]   // never nil
	loads    atomic.Uint64            // good files that were loaded
	failures atomic.Uint64            // files that were refused
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

// look takes over the file if it is a new and good one. What was served before
// stays otherwise.
func (s *store) look() {
	file, read, err := s.reader.Look()
	now := *s.source.Load()
	if err != nil {
		if s.changed(err) {
			s.refused(err)
		}
		now.problem = err.Error()
	} else {
		now.read, now.problem = read, ""
		if s.last != nil && s.current.Load() != nil && file == nil {
			s.log.Info("state file is back, unchanged", "path", s.path)
		}
	}
	s.last = err
	if file != nil {
		s.swap(newSnapshot(file))
	}
	s.source.Store(&now)
}

func (s *store) swap(next *snapshot) {
	last := s.current.Swap(next)
	s.loads.Add(1)
	if last == nil || last.content != next.content {
		s.log.Info("state loaded", "path", s.path, "keys", len(next.file.Rows), "index", next.file.Index, "content", next.content[:12])
	}
}

// changed reports whether err says something else than that of the last look.
// A reader repeats the very same error for a file that it has refused.
func (s *store) changed(err error) bool {
	if s.last == nil {
		return true
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err.Error() != s.last.Error()
	}
	return !errors.Is(err, s.last)
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
	s.log.Error("state file refused", "path", s.path, "error", err, "answering", serving)
}
