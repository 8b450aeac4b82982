package statefile

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// maxLinks is how many links Linux follows.
const maxLinks = 40

// Follow returns the file that path leads to if path is a symbolic link, and else
// path as it is, with the links among its directories: those may come to lead
// elsewhere. There need not be such a file yet. A writer follows once and goes on
// with the result: so the lock, temporary files and the file are side by side.
func Follow(path string) (string, error) {
	at := path
	for range maxLinks {
		target, err := os.Readlink(at)
		if err != nil {
			return at, nil // no link; what else may be wrong is found by whoever opens it
		}
		dir, _ := filepath.Split(at)
		if filepath.IsAbs(target) {
			dir = ""
		}
		dir, base := filepath.Split(dir + target)
		dir, err = filepath.EvalSymlinks(cmp.Or(dir, "."))
		if err != nil {
			return "", fmt.Errorf("following the link %s: %w", path, err)
		}
		at = filepath.Join(dir, base)
	}
	return "", fmt.Errorf("following the link %s: %w", path, syscall.ELOOP)
}

// maxName is the greatest length of a name that leaves room, in the 255 bytes that
// Linux has for one, for those of temporary files and of what is put back.
const maxName = 220

// Target is [Follow] for a path that a file is to be written to. It returns an
// error if none can be: if something else than a file is there, or if the name is
// too long.
func Target(path string) (string, error) {
	at, err := Follow(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(at); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: not a regular file (%s), so no file can be put there", at, info.Mode().Type())
	}
	return at, CheckName(at)
}

// CheckName returns an error if the name of the file at path is too long for
// temporary files beside it.
func CheckName(path string) error {
	if n := len(filepath.Base(path)); n > maxName {
		return fmt.Errorf("%s: the name has %d bytes: want at most %d, temporary files beside it have longer ones", path, n, maxName)
	}
	return nil
}

// Identity returns a name of the file at path, there or not, that is the same for
// all paths that lead to it now.
func Identity(path string) string {
	at, err := Follow(path)
	if err != nil {
		at = path
	}
	if abs, err := filepath.Abs(at); err == nil {
		at = abs
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(at)); err == nil {
		at = filepath.Join(dir, filepath.Base(at))
	}
	return filepath.Clean(at)
}
