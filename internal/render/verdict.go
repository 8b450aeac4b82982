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
func (a *applier) keep(current []byte, there bool) error {
	if there {
		if err := statefile.Write(a.previous(), current); err != nil {
			return err
		}
	} else if err := remove(a.previous()); err != nil {
		return err
	}
	return statefile.Write(a.pending(), nil)
}

// putBack undoes the replacement.
func (a *applier) putBack() error {
	data, err := statefile.ReadRegular(a.previous(), statefile.MaxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = remove(a.path)
	case err == nil:
		err = statefile.Write(a.path, data)
	}
	if err != nil {
		return fmt.Errorf("putting the previous file back: %w", err)
	}
	return a.decide()
}

// decide ends the pending verdict. previous goes last: without pending it means
// nothing.
func (a *applier) decide() error {
	return errors.Join(remove(a.pending()), remove(a.previous()))
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
