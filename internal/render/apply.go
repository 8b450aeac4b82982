package render

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"hadrain/internal/statefile"
)

// apply makes the destination say what the template makes of s, and runs the
// command if that is new, or if no command has yet judged what is there.
func (a *applier) apply(ctx context.Context, s *snapshot) error {
	if err := a.lock(); err != nil {
		return onDisk(err)
	}
	current, err := statefile.ReadRegular(a.path, statefile.MaxSize)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return onDisk(fmt.Errorf("reading the file to replace: %w", err))
	}
	output, err := a.execute(ctx, s, string(current))
	if err != nil {
		return err
	}
	undecided, err := a.undecided()
	if err != nil {
		return onDisk(err)
	}
	if there && !undecided && bytes.Equal(current, output) {
		return nil
	}
	if a.Command != "" && !undecided {
		if err := a.keep(there); err != nil {
			return onDisk(err)
		}
	}
	if err := statefile.Write(a.path, output); err != nil {
		return onDisk(err)
	}
	return a.judge(ctx, undecided)
}

// judge has the command, if there is one, decide about the file that is there now.
func (a *applier) judge(ctx context.Context, undecided bool) error {
	if a.Command == "" {
		if !undecided {
			return nil
		}
		return onDisk(a.decide()) // it has no command any more
	}
	if err := runCommand(ctx, a.Command, cmp.Or(a.Timeout, DefaultTimeout)); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return errors.Join(err, onDisk(a.putBack()))
	}
	return onDisk(a.decide())
}
