package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	dirPrefix = "hadrain-dev-"
	dirLock   = ".lock" // in a directory; locked as long as its process lives
)

// directory is the private temporary directory of a run. One whose process was
// killed is removed at the next start, by [sweep].
type directory struct {
	path string
	lock *os.File
}

// newDirectory makes a directory that no sweep removes.
func newDirectory() (d *directory, err error) {
	d = &directory{}
	if d.path, err = os.MkdirTemp("", dirPrefix); err != nil {
		return nil, fmt.Errorf("making a temporary directory: %w", err)
	}
	// It gets its name when it is locked: a lock that is free means that the
	// process is dead, not that it has just begun.
	name := filepath.Join(d.path, dirLock)
	if d.lock, err = os.OpenFile(name+".new", os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		err = errors.Join(syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), os.Rename(name+".new", name))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the temporary directory: %w", err), d.remove())
	}
	return d, nil
}

// remove ends the lock last, so that nobody else removes it at the same time.
func (d *directory) remove() error {
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

// sweep removes the directories of this user's runs that were killed.
func sweep(log *slog.Logger) {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		log.Warn("looking for what killed runs left failed", "error", err)
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), dirPrefix) {
			continue
		}
		path := filepath.Join(os.TempDir(), entry.Name())
		removed, err := removeDead(path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			log.Warn("removing what a killed run left failed", "directory", path, "error", err)
		case removed:
			log.Info("removed what a killed run left", "directory", path)
		}
	}
}

// removeDead removes a directory if it is this user's, and its lock is free.
func removeDead(path string) (removed bool, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Geteuid() {
		return false, nil
	}
	lock, err := os.OpenFile(filepath.Join(path, dirLock), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, err // not there: it has just begun
	}
	defer func() { _ = lock.Close() }() // nothing was written
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, nil // it lives
	}
	return true, os.RemoveAll(path)
}
