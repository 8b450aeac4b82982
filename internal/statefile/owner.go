package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// traits are what a file passes on to the one that takes its place.
type traits struct {
	perm  fs.FileMode
	owner *syscall.Stat_t // nil: whoever writes
	acl   []byte          // nil: no access control list
}

// traitsAt returns those of the file at path, and of the file that a link there
// leads to. A file that takes no other's place can be read by everybody; one that
// nobody may look at says nothing about its mode, so that the least is due.
func traitsAt(path string) traits {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return traits{perm: 0o600}
	case err != nil || !info.Mode().IsRegular():
		return traits{perm: 0o644}
	}
	return traitsOf(info, path)
}

// traitsOf returns those of the regular file that info is of.
func traitsOf(info fs.FileInfo, name string) traits {
	t := traits{perm: info.Mode().Perm()}
	t.owner, _ = info.Sys().(*syscall.Stat_t)
	var err error
	if t.acl, err = readACL(name); err != nil {
		t.perm &^= 0o070 // perhaps of a list
	}
	return t
}

// give gives them to tmp, the owner and the group where permitted.
func (t traits) give(tmp *os.File) error {
	if t.owner != nil {
		err := tmp.Chown(int(t.owner.Uid), int(t.owner.Gid))
		if forbidden(err) {
			err = tmp.Chown(-1, int(t.owner.Gid))
		}
		if err != nil && !forbidden(err) {
			return err
		}
	}
	return t.permit(tmp)
}

// permit gives tmp the access control list and the mode. With a list, the bits of
// the group are the most that anybody in it has: alone they would give that to the
// group. A list that is refused is worth less than the content.
func (t traits) permit(tmp *os.File) error {
	name, perm := openName(tmp), t.perm
	if len(t.acl) > 0 {
		if syscall.Setxattr(name, accessACL, t.acl, 0) == nil {
			return nil // it has all bits of the mode
		}
		perm = without(t.acl, perm)
	}
	_ = syscall.Removexattr(name, accessACL) // it may have inherited one from its directory
	return tmp.Chmod(perm)
}

// openName returns a name that leads to the file that f is, whatever became of
// the one that it was opened by: somebody may have put a link there.
func openName(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// forbidden reports whether err is of somebody who may not give a file away. Only
// root may; anybody else may choose among their own groups. In a user namespace,
// such as of PrivateUsers= of systemd, an owner may be one who has no number there.
func forbidden(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL)
}

// ours reports whether the file at path may be one that this process wrote. Root
// gives away what it writes.
func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	return !ok || os.Geteuid() == 0 || int(sys.Uid) == os.Geteuid()
}
