package statefile

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// PollInterval is how often a watch looks without having been told to: the
// backstop for file systems without inotify, exhausted watch limits, replaced
// directories and links.
const PollInterval = time.Second

// restTime is the least time between two notices, so that somebody who changes
// the file again and again, or is busy with others in its directory, gets no
// loop of ours to run as often. It is less than the default of render's --quiet.
const restTime = 100 * time.Millisecond

// Watch says on the returned channel that the file at path may have changed,
// until ctx ends; then it closes the channel. It watches the directory, since a
// watch on the file would be lost with the first rename over it. The channel is
// a level trigger: it holds at most one notice, and the receiver looks at the
// file itself. The first notice comes at once, and so does one of a change that
// follows none for a tenth of a second.
func Watch(ctx context.Context, path string) <-chan struct{} {
	notices := make(chan struct{}, 1)
	w := watch{path: path, dir: filepath.Dir(path), notices: notices}
	go func() {
		defer close(notices)
		w.run(ctx)
	}()
	return notices
}

type watch struct {
	path    string
	dir     string
	notices chan<- struct{}

	inotify *fsnotify.Watcher // nil while there is none to be had
	watched os.FileInfo       // the directory that inotify watches, nil if none
}

func (w *watch) run(ctx context.Context) {
	defer w.drop()
	tick := time.NewTicker(PollInterval)
	defer tick.Stop()
	var told time.Time // of an event
	for {
		// Watching first, telling then: what changes in between is seen.
		w.rewatch()
		w.notify()
		event, ok := w.wait(ctx, tick.C)
		if !ok {
			return
		}
		if !event {
			continue // what comes next is not put off by having looked
		}
		if !w.rest(ctx, restTime-time.Since(told)) {
			return
		}
		told = time.Now()
	}
}

// rest lets events pass for a while: a notice for all of them follows.
func (w *watch) rest(ctx context.Context, d time.Duration) bool {
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		events, errors := w.channels()
		select {
		case <-ctx.Done():
			return false
		case <-over.C:
			return true
		case <-events:
		case <-errors:
			w.drop()
		}
	}
}

// wait returns when there may be something to see, and whether something was told:
// else a second is over. It is not ok if ctx ended.
func (w *watch) wait(ctx context.Context, tick <-chan time.Time) (event, ok bool) {
	for {
		events, errors := w.channels()
		select {
		case <-ctx.Done():
			return false, false
		case <-tick:
			return false, true
		case event := <-events:
			// The directory is spelled otherwise: "./" before a relative name.
			if !isTemp(w.path, filepath.Base(event.Name)) {
				return true, true
			}
		case <-errors:
			// An overflow lost events: looking again is all there is to do.
			// Anything else: the poll goes on, with a new watcher.
			w.drop()
			return true, true
		}
	}
}

func (w *watch) notify() {
	select {
	case w.notices <- struct{}{}:
	default:
	}
}

// rewatch makes the watch be on the directory that the path leads to now.
func (w *watch) rewatch() {
	now, err := os.Stat(w.dir)
	if err != nil {
		w.drop()
		return
	}
	// The list is empty once the watched directory was removed; one made anew
	// may well have the same inode.
	if w.inotify != nil && os.SameFile(now, w.watched) && len(w.inotify.WatchList()) > 0 {
		return
	}
	w.drop()
	inotify, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	w.inotify = inotify
	if err := inotify.Add(w.dir); err != nil {
		w.drop()
		return
	}
	w.watched = now
}

func (w *watch) drop() {
	if w.inotify != nil {
		// Close waits for nothing that we could lose; its error says only that
		// it was closed before.
		_ = w.inotify.Close()
	}
	w.inotify, w.watched = nil, nil
}

func (w *watch) channels() (<-chan fsnotify.Event, <-chan error) {
	if w.inotify == nil {
		return nil, nil
	}
	return w.inotify.Events, w.inotify.Errors
}
