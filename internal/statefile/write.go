package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Write puts data in place of the file at path, so that a reader sees the old
// content or the new, never a part: a temporary file ".NAME.tmp-*" in the same
// directory is written, synced and renamed over path, then the directory is
// synced. When Write returns nil the content survives a crash of the machine;
// when it fails before the rename the old file is untouched. It is called with
// the lock held: what an earlier attempt could not remove is removed first. The
// directory must be one that the caller may read, write and search.
//
// An existing file keeps its mode, its access control list and, where permitted,
// its owner and group; a new one gets 0644, whatever the umask. A symbolic link
// is replaced, not followed: see [Follow]. The content may be a secret that was
// moved, with a link left in its place: so the new file gets all that from the
// file that the link leads to, as if that were at path. It gets 0600 if that file
// is where the caller may not look, and 0644 if there is none. Anything else but a
// regular file is refused.
func Write(path string, data []byte) error {
	if err := replaceable(path); err != nil {
		return err
	}
	return put(path, data, traitsAt(path))
}

// Copy puts a copy of the file from in place of the one at path, as [Write] does,
// with the mode, the access control list, the owner and the group of the file that
// was read: of the one that from leads to, if it is a link. Where both are in a file
// system with hard links it takes no space, so that it works on a full disk. Neither
// file must be written to in place.
func Copy(path, from string) error {
	f, info, err := openRegular(from)
	if err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	if err := replaceable(path); err != nil {
		return err
	}
	if tmp := filepath.Join(filepath.Dir(path), tempPrefix(path)+"0"); os.Link(from, tmp) == nil {
		// It has not become another file meanwhile, and is no link.
		if linked, err := os.Lstat(tmp); err == nil && os.SameFile(linked, info) {
			return install(tmp, path)
		}
		_ = os.Remove(tmp) // else with the next write
	}
	data, err := readAtMost(f, info.Size(), MaxSize)
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return put(path, data, traitsOf(info, openName(f)))
}

// put puts a file with data and these traits at path.
func put(path string, data []byte, t traits) error {
	tmp, err := stage(path, data, t)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return install(tmp, path)
}

// install renames tmp over path.
func install(tmp, path string) error {
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, unnamed(err)), unnamed(os.Remove(tmp)))
	}
	// Two links of one file are left as they are by a rename.
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing %s: %w", path, unnamed(err))
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// replaceable returns an error if there is something at path that is not to be
// replaced, or if temporary files of ours cannot be removed: they would become ever
// more. What else has such a name, say of another user in /tmp, stops nothing.
func replaceable(path string) error {
	info, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing: %w", err)
	}
	if err == nil && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink {
		return fmt.Errorf("writing %s: not a regular file (%s)", path, info.Mode().Type())
	}
	if err := sweep(path, ours); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// stage writes data to a temporary file beside path, complete in content, mode
// and owner, and returns its name. On failure it leaves nothing behind.
func stage(path string, data []byte, t traits) (string, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), tempPrefix(path)+"*")
	if err != nil {
		return "", unnamed(err)
	}
	err = errors.Join(unnamed(fill(tmp, data, t)), unnamed(tmp.Close()))
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

func fill(tmp *os.File, data []byte, t traits) error {
	if _, err := tmp.Write(data); err != nil {
		return err
	}
	if err := t.give(tmp); err != nil {
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
func Sweep(path string) error { return sweep(path, func(string) bool { return true }) }

// sweep is Sweep, with an error only of what counts and stays.
func sweep(path string, counts func(name string) bool) error {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !isTemp(path, entry.Name()) {
			continue
		}
		name := filepath.Join(dir, entry.Name())
		if gone := os.Remove(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) && counts(name) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// tempPrefix begins the name of a temporary file of path. A number follows.
func tempPrefix(path string) string { return "." + filepath.Base(path) + ".tmp-" }

// isTemp reports whether name, without its directory, is one that Write and Copy
// give a temporary file of path. Those of a neighbour that is called NAME.tmp-2 are
// not.
func isTemp(path, name string) bool {
	number, ok := strings.CutPrefix(name, tempPrefix(path))
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
