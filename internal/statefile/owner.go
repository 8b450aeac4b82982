package statefile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// resemble gives tmp the mode, the access control list and, where permitted, the
// owner and group of the regular file like. If there is none it gives mode 0644.
func resemble(tmp *os.File, like string) error {
	info, err := os.Lstat(like)
	if err != nil || !info.Mode().IsRegular() {
		return tmp.Chmod(0o644)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		err := tmp.Chown(int(owner.Uid), int(owner.Gid))
		if forbidden(err) {
			err = tmp.Chown(-1, int(owner.Gid))
		}
		if err != nil && !forbidden(err) {
			return err
		}
	}
	if err := tmp.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	keepACL(tmp.Name(), like)
	return nil
}

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

// accessACL is the attribute that Linux keeps access control lists in.
const accessACL = "system.posix_acl_access"

// keepACL gives tmp the access control list of like, or none. Without it the mode
// would say something else: with a list, the bits of the group are the most that
// anybody in the list has. A file system without lists has nothing to keep, and
// one that is refused is worth less than the content.
func keepACL(tmp, like string) {
	size, err := syscall.Getxattr(like, accessACL, nil)
	if err != nil || size == 0 {
		// It may have inherited one from its directory.
		_ = syscall.Removexattr(tmp, accessACL)
		return
	}
	acl := make([]byte, size)
	if size, err = syscall.Getxattr(like, accessACL, acl); err == nil {
		_ = syscall.Setxattr(tmp, accessACL, acl[:size], 0)
	}
}
