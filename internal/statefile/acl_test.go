package statefile_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

const accessACL = "system.posix_acl_access"

// acl is "u::rw- u:12345:rw- g::r-- m::rw- o::---", as the kernel keeps it.
func acl() []byte { return aclFor(12345) }

func aclFor(uid uint32) []byte {
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range [][3]uint32{{1, 6, 1<<32 - 1}, {2, 6, uid}, {4, 4, 1<<32 - 1}, {16, 6, 1<<32 - 1}, {32, 0, 1<<32 - 1}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[1]))
		list = binary.LittleEndian.AppendUint32(list, entry[2])
	}
	return list
}

// The mode of a file with an access control list shows the most that anybody in
// the list may do: without the list it would give that to the group.
func TestWriteKeepsTheACL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	must(t, os.WriteFile(path, nil, 0o640))
	if err := syscall.Setxattr(path, accessACL, acl(), 0); err != nil {
		testpeer.Missing(t, "a file system with access control lists: "+err.Error())
	}
	must(t, statefile.Write(path, []byte("x")))
	got := make([]byte, 100)
	n, err := syscall.Getxattr(path, accessACL, got)
	if err != nil || string(got[:n]) != string(acl()) {
		t.Errorf("the list is now %x, %v, want %x", got[:max(n, 0)], err, acl())
	}
	// A list that is inherited, and that the file does not have, stays away.
	must(t, syscall.Setxattr(filepath.Dir(path), "system.posix_acl_default", acl(), 0))
	must(t, syscall.Removexattr(path, accessACL))
	must(t, os.Chmod(path, 0o600))
	must(t, statefile.Write(path, []byte("x")))
	if n, err := syscall.Getxattr(path, accessACL, nil); err == nil {
		t.Errorf("the file has now a list of %d bytes", n)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the mode is now %v, %v", info.Mode(), err)
	}
}

// A list that cannot be set is left out, and gives its rights to nobody: here
// because whom it names has no number in a user namespace.
func TestWriteWithoutTheACL(t *testing.T) {
	needRoot(t)
	path := othersFile(t, 0, 0)
	must(t, syscall.Setxattr(path, accessACL, aclFor(54321), 0))
	must(t, syscall.Setxattr(filepath.Dir(path), "system.posix_acl_default", aclFor(54321), 0))
	ids := []syscall.SysProcIDMap{{ContainerID: 12345, HostID: 12345, Size: 1}}
	writeAs(t, path, &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids,
		Credential: &syscall.Credential{Uid: 12345, Gid: 12345},
	})
	wantMode(t, path, 0o640)
	if n, err := syscall.Getxattr(path, accessACL, nil); err == nil {
		t.Errorf("the file has now a list of %d bytes", n)
	}
}

// The same where the file system has no lists.
func TestCopyWithoutTheACL(t *testing.T) {
	from, dir := filepath.Join(t.TempDir(), "from"), t.TempDir()
	secret(t, from)
	must(t, syscall.Mount("ramfs", dir, "ramfs", 0, ""))
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	path := filepath.Join(dir, "path")
	must(t, statefile.Copy(path, from))
	wantMode(t, path, 0o640)
	wantOwner(t, path, 12345, 23456)
}
