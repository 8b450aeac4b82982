package testpeer

import (
	"os"
	"path/filepath"
	"testing"
)

// removeCgroups removes the cgroups that a machine leaves behind, and waits
// until the kernel has let go of them.
func removeCgroups(t testing.TB, name string) {
	t.Helper()
	WaitFor(t, "the cgroups of "+name+" to be empty", func() (bool, string) {
		left := ""
		for _, tree := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"} {
			if err := RemoveCgroup(filepath.Join(tree, name)); err != nil && !os.IsNotExist(err) {
				left = err.Error()
			}
		}
		return left == "", left
	})
}

// RemoveCgroup removes a cgroup and those below it: directories only, the files
// in them are the kernel's.
func RemoveCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := RemoveCgroup(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}
