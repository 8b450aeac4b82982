package render

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// execute returns what the template makes of s. text/template cannot be
// interrupted, and a template may loop for ever: so that this delays neither the
// end of the process nor the report of a failure, it is executed by a goroutine
// that is not waited for when ctx ends, or when it takes too long.
func (a *applier) execute(ctx context.Context, s *snapshot, current string) ([]byte, error) {
	limit := cmp.Or(a.Timeout, DefaultTimeout)
	tooLong := fmt.Errorf("template %s: it takes longer than %s, and cannot be interrupted: mend it and reload; what runs ends with a restart only", a.Source, limit)
	if open(a.endless) {
		return nil, tooLong // a second one would take another processor
	}
	program, done := a.program, make(chan struct{})
	var output []byte // both of the goroutine, until done is closed
	var err error
	go func() {
		defer close(done)
		output, err = program.execute(s, current)
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-done:
		if err != nil {
			err = program.located(err)
		}
		return output, err
	case <-late.C:
		a.endless = done
		return nil, tooLong
	case <-ctx.Done():
		if open(done) {
			a.log.Warn("a template still runs, not waiting for it", "template", a.Source, "destination", a.Destination)
		}
		return nil, ctx.Err()
	}
}

// open reports whether a channel, if there is one, was not closed yet.
func open(done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	default:
		return done != nil
	}
}
