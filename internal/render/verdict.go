package render

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hadrain/internal/statefile"
)

// The files beside a destination. pending stands from before the destination is
// replaced until the command has given its verdict; previous holds what to put
// back meanwhile, if there was anything.
func (a *applier) pending() string  { return a.beside("pending") }
func (a *applier) previous() string { return a.beside("previous") }

func (a *applier) beside(suffix string) string {
	return filepath.Join(filepath.Dir(a.path), "."+filepath.Base(a.path)+"."+suffix)
}

// keep saves what is there, then says that a verdict is pending.
func (a *applier) keep(there bool) error {
	if there {
		if err := statefile.Copy(a.previous(), a.path); err != nil {
			return err
		}
	} else if err := remove(a.previous()); err != nil {
		return err
	}
	return statefile.Write(a.pending(), nil)
}

// undecided reports whether no command has judged yet what is there. A verdict
// that is in and could not be noted is noted first: else the command would run
// each second for nothing.
func (a *applier) undecided() (bool, error) {
	if a.decided {
		if err := a.decide(); err != nil {
			return false, err
		}
	}
	return exists(a.pending())
}

// putBack undoes the replacement.
func (a *applier) putBack() error {
	there, err := exists(a.previous())
	switch {
	case err == nil && there:
		err = statefile.Copy(a.path, a.previous())
	case err == nil:
		err = remove(a.path)
	}
	if err != nil {
		return fmt.Errorf("putting the previous file back: %w", err)
	}
	return a.decide()
}

// decide ends the pending verdict. previous goes last: without pending it means
// nothing.
func (a *applier) decide() error {
	a.decided = true
	if err := errors.Join(remove(a.pending()), remove(a.previous())); err != nil {
		return fmt.Errorf("noting the verdict: %w", err)
	}
	a.decided = false
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// A diskError is of a file that could not be read or written. Such trouble goes
// away without a change in Consul, and so the attempt is repeated; what a
// template or its command refuses is no better a second later.
type diskError struct{ error }

// Unwrap returns what happened.
func (e diskError) Unwrap() error { return e.error }

func onDisk(err error) error {
	if err == nil {
		return nil
	}
	return diskError{err}
}
