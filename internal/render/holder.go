package render

import (
	"errors"
	"io/fs"
	"os"

	"hadrain/internal/statefile"
)

// A holder holds the lock of one file, or none.
type holder struct {
	locked  fs.FileInfo  // the lock file that this process holds; nil: none
	release func() error // of the lock; nil: none
}

// lockOf makes this process the only writer of path, also after the directory was
// removed and made again: then the lock that is held is on a file that nobody
// else sees.
func (h *holder) lockOf(path string) error {
	info, err := os.Stat(statefile.LockPath(path))
	if err == nil && h.locked != nil && os.SameFile(info, h.locked) {
		return nil
	}
	release, err := statefile.Lock(path)
	if err != nil {
		return err
	}
	info, err = os.Stat(statefile.LockPath(path))
	if err != nil {
		return errors.Join(err, release())
	}
	err = h.unlock()
	h.locked, h.release = info, release
	return err
}

// unlock gives up the lock, if there is one.
func (h *holder) unlock() error {
	release := h.release
	h.locked, h.release = nil, nil
	if release == nil {
		return nil
	}
	return release()
}
