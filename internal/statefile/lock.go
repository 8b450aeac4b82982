package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked is returned by [Lock] when another process writes the file.
var ErrLocked = errors.New("another process holds the lock")

// LockPath returns the name of the lock file of path. If it is gone, or another
// file than it was, the lock on it excludes nobody any more.
func LockPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
}

// Lock makes the caller the only writer of path, by a lock on ".NAME.lock" in
// the same directory. The lock ends with release or with the process, however
// it ends; the lock file stays.
func Lock(path string) (release func() error, err error) {
	name := LockPath(path)
	// A link would have root make a file wherever it leads to, say /etc/nologin.
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("locking %s: %w; create the directory: mkdir -p %s", path, err, filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f.Close, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, errors.Join(fmt.Errorf("locking %s with %s: %w", path, name, err), f.Close())
}
