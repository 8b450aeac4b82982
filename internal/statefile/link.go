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
