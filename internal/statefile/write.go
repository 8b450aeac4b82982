package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Write puts data in place of the file at path, so that a reader sees the old
// content or the new, never a part: a temporary file ".NAME.tmp-*" in the same
// directory is written, synced and renamed over path, then the directory is
// synced. When Write returns nil the content survives a crash of the machine;
// when it fails before the rename the old file is untouched.
//
// An existing file keeps its mode and, where permitted, its owner; a new one
// gets 0644, whatever the umask. If path is a symbolic link the file behind it
// is replaced and the link stays. Anything but a regular file is refused.
func Write(path string, data []byte) error {
	path, old, err := resolve(path)
	if err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	tmp, err := stage(path, data, old)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, unnamed(err)), unnamed(os.Remove(tmp)))
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// resolve follows path if it is a link, and returns what is there now: nil if
// there is nothing.
func resolve(path string) (string, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	}
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		link := path
		if path, err = filepath.EvalSymlinks(link); err != nil {
			return "", nil, fmt.Errorf("following the link %s: %w", link, err)
		}
		info, err = os.Lstat(path)
	}
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() {
		return "", nil, fmt.Errorf("%s is not a regular file (%s)", path, info.Mode().Type())
	}
	return path, info, nil
}

// stage writes data to a temporary file beside path, complete in content, mode
// and owner, and returns its name. On failure it leaves nothing behind.
func stage(path string, data []byte, old fs.FileInfo) (string, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), tempPattern(path))
	if err != nil {
		return "", unnamed(err)
	}
	err = errors.Join(unnamed(fill(tmp, data, old)), unnamed(tmp.Close()))
	if err != nil {
		return "", errors.Join(err, unnamed(os.Remove(tmp.Name())))
	}
	return tmp.Name(), nil
}

// unnamed takes the name of a temporary file out of an error. It is another one
// at each attempt, and says nothing: so the same trouble has the same text, and
// a full disk is one line in a log.
func unnamed(err error) error {
	if named, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s of a temporary file beside it: %w", named.Op, named.Err)
	}
	if named, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%s: %w", named.Op, named.Err)
	}
	return err
}

func fill(tmp *os.File, data []byte, old fs.FileInfo) error {
	if _, err := tmp.Write(data); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if old != nil {
		mode = old.Mode().Perm()
		if owner, ok := old.Sys().(*syscall.Stat_t); ok {
			// Only root may give a file away; anybody else keeps their own.
			err := tmp.Chown(int(owner.Uid), int(owner.Gid))
			if err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
	}
	if err := tmp.Chmod(mode); err != nil {
		return err
	}
	return tmp.Sync()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func tempPattern(path string) string { return "." + filepath.Base(path) + ".tmp-*" }

// Touch sets the modification time of the file at path to at, the time of the
// last accepted read.
func Touch(path string, at time.Time) error {
	if err := os.Chtimes(path, at, at); err != nil {
		return fmt.Errorf("touching the state: %w", err)
	}
	return nil
}

// Sweep removes temporary files that a killed writer of path left behind. Call
// it with the lock held.
func Sweep(path string) error {
	names, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(path)), tempPattern(path)))
	if err != nil {
		return fmt.Errorf("sweeping beside %s: %w", path, err)
	}
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
