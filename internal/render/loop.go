package render

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"hadrain/internal/kv"
	"hadrain/internal/statefile"
	"hadrain/internal/statusjson"
)

// loop owns the state. Its methods run in one goroutine.
type loop struct {
	cfg      Config
	log      *slog.Logger
	metrics  *metrics
	watch    *kv.Watch
	renderer renderer
	out      *output                    // nil: no state file
	appliers atomic.Pointer[[]*applier] // of further templates; only the loop changes the list
	leaving  map[string]*applier        // by path, dropped ones that may still run
	offered  *snapshot                  // last state, for templates that may be added; nil: none

	spawn     func(*applier) // starts one that was added
	reconnect func() error   // reads the certificates of authorities again

	file       *statefile.File // last rendered, or found at the start; nil: none
	generation uint64          // of the read that file was made of; 0: of no read yet
	accepted   time.Time       // last accepted read that file stands for
	synced     bool
	reason     string          // of the failure that was logged last; "" while reads are accepted
	trouble    string          // error of rendering or writing that was logged last; "": none
	published  *statefile.File // that status and metrics show
	told       bool            // Ready was called

	status atomic.Pointer[statusjson.Render]
}

func (l *loop) run(ctx context.Context) error {
	var notices <-chan struct{}
	if l.out != nil {
		watching, stop := context.WithCancel(ctx)
		notices = statefile.Watch(watching, l.out.path)
		defer drain(notices)
		defer stop()
	}
	start := time.NewTimer(l.cfg.StartTimeout)
	defer start.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-start.C:
			if l.generation == 0 {
				return l.tooLate()
			}
		case <-l.watch.Changed():
			l.follow()
		case <-notices:
			l.inspect()
		case <-l.cfg.Reload:
			l.reload()
		}
	}
}

// drain returns when the sender has ended.
func drain(notices <-chan struct{}) {
	for range notices {
	}
}

// tooLate is the error of a start without an accepted read.
func (l *loop) tooLate() error {
	why := "no answer yet"
	if failure := l.watch.Health().Failure; failure != nil {
		why = failure.Error()
	}
	return fmt.Errorf("no accepted read of Consul at %s within %s: %s", l.cfg.Consul.Shown(), l.cfg.StartTimeout, why)
}

// follow brings the file to what was read last.
func (l *loop) follow() {
	health := l.watch.Health()
	l.logFailure(health.Failure)
	read := l.watch.Latest()
	if read != nil && read.Generation != l.generation {
		l.render(read)
	}
	// An unchanged read speaks for the file only if the file is made of the
	// read that it left unchanged.
	if l.generation != 0 && health.Generation == l.generation && health.Accepted.After(l.accepted) {
		l.accepted = health.Accepted
		l.install()
	}
	l.show(health)
	l.tell("WATCHDOG=1\n")
}

// render makes the file of read and installs it. If that fails the old one
// stays, and the next read tries again.
func (l *loop) render(read *kv.Read) {
	start := time.Now()
	file, data, err := l.renderer.render(read, l.file, start)
	if err != nil {
		l.metrics.writeErrors.Inc()
		l.logTrouble(err)
		return
	}
	l.metrics.renderDuration.Observe(time.Since(start).Seconds())
	logRejects(l.log, l.file, file)
	l.file, l.generation, l.accepted = file, read.Generation, read.At
	if l.out != nil && data != nil {
		l.out.set(data)
	}
	l.install()
	l.offer(&snapshot{generation: read.Generation, file: file, pairs: read.Pairs})
	l.watch.Release(read)
}

// offer has all further templates applied to s. If any may be added by a reload, s is
// kept: its keys take memory, but a template that is there has them anyway.
func (l *loop) offer(s *snapshot) {
	for _, a := range l.templates() {
		a.offer(s)
	}
	if l.cfg.List != nil || len(l.cfg.Templates) > 0 {
		l.offered = s
	}
}

// install makes the file on disk the one that was rendered, as of the last
// accepted read.
func (l *loop) install() {
	if err := l.put(); err != nil {
		l.metrics.writeErrors.Inc()
		l.logTrouble(err)
		return
	}
	l.logTrouble(nil)
	if l.synced || l.generation == 0 {
		return
	}
	l.synced = true
	l.log.Info("in sync", "keys", len(l.file.Rows), "index", l.file.Index, "id", l.file.ID, "state", l.cfg.State)
}

func (l *loop) put() error {
	if l.out == nil {
		return nil
	}
	if l.out.dirty {
		start := time.Now()
		if err := l.out.write(); err != nil {
			return err
		}
		l.metrics.writeDuration.Observe(time.Since(start).Seconds())
		l.metrics.writes.Inc()
	}
	return l.out.touch(l.accepted)
}

// inspect looks at the file on disk. It runs soon after each event of its directory,
// and each second: so it is also what tries again after a failed write.
func (l *loop) inspect() {
	if l.file == nil {
		return
	}
	if l.out.dirty {
		l.reinstall()
		return
	}
	found := l.out.look()
	switch {
	case found == intact:
		return
	case found == missing && l.reason == kv.WrongSentinel:
		// The message says so: removing the file accepts the other id.
		l.log.Warn("the state file was removed while the sentinel has another id: accepting the next one", "state", l.out.path)
		l.file = nil // nothing of it is kept, not even for rejected values
		l.watch.ExpectAny()
		return
	case found == missing:
		l.log.Warn("the state file was removed by somebody else: putting it back", "state", l.out.path)
	default:
		l.log.Warn("the state file was changed by somebody else: putting it back", "state", l.out.path)
	}
	l.metrics.putBacks.Inc()
	l.out.dirty = true
	l.reinstall()
}

// reinstall is install without a read, and what came of it is to be seen at once.
func (l *loop) reinstall() {
	l.install()
	l.show(l.watch.Health())
	l.tell("")
}

// logFailure logs when reads begin to fail, fail for another reason, or are
// accepted again.
func (l *loop) logFailure(failure *kv.ReadError) {
	reason := ""
	if failure != nil {
		reason = failure.Reason
	}
	if reason == l.reason {
		return
	}
	l.reason = reason
	switch {
	case failure == nil:
		l.log.Info("reads of Consul are accepted again")
	case failure.Refused:
		l.log.Error("read refused, keeping the state", "reason", reason, "error", failure.Message)
	default:
		l.log.Error("read failed, keeping the state", "reason", reason, "error", failure.Message)
	}
}

// logTrouble logs when rendering or writing begins to fail, fails otherwise, or
// works again (err is nil).
func (l *loop) logTrouble(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == l.trouble {
		return
	}
	l.trouble = text
	if err != nil {
		l.log.Error("the state file is not current", "error", err)
	} else {
		l.log.Info("the state file is current again")
	}
}
