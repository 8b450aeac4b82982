package statefile

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// list returns an access control list, of pairs of a tag and rights.
func list(entries ...uint16) []byte {
	l := binary.LittleEndian.AppendUint32(nil, 2)
	for i := 0; i < len(entries); i += 2 {
		l = binary.LittleEndian.AppendUint16(l, entries[i])
		l = binary.LittleEndian.AppendUint16(l, entries[i+1])
		l = binary.LittleEndian.AppendUint32(l, uint32(i)) // whom it names
	}
	return l
}

func TestWithout(t *testing.T) {
	good := list(1, 6, 2, 6, 4, 4, 16, 6, 32, 4)
	for name, tc := range map[string]struct {
		acl        []byte
		perm, want fs.FileMode
	}{
		"the group's own":         {good, 0o664, 0o644},
		"the mask limits it":      {list(1, 6, 4, 7, 16, 4, 32, 4), 0o644, 0o644},
		"no mask":                 {list(1, 6, 4, 4, 32, 4), 0o644, 0o644},
		"several":                 {list(1, 6, 2, 6, 2, 4, 4, 4, 8, 6, 8, 4, 16, 6, 32, 4), 0o664, 0o644},
		"a user has less":         {list(1, 6, 2, 0, 4, 6, 16, 6, 32, 4), 0o664, 0o600},
		"a group has less":        {list(1, 6, 4, 6, 8, 4, 16, 6, 32, 6), 0o666, 0o644},
		"a user, by the mask":     {list(1, 6, 2, 6, 4, 6, 16, 0, 32, 4), 0o604, 0o600},
		"nothing":                 {nil, 0o664, 0o604},
		"cut":                     {good[:len(good)-1], 0o664, 0o604},
		"cut in its head":         {good[:3], 0o664, 0o604},
		"only a head":             {good[:4], 0o664, 0o604},
		"another version":         {append([]byte{3}, good[1:]...), 0o664, 0o604},
		"unknown tag":             {list(1, 6, 4, 4, 32, 4, 64, 4), 0o664, 0o604},
		"two tags in one":         {list(1, 6, 4, 4, 24, 6, 32, 4), 0o664, 0o604},
		"no tag":                  {list(0, 6, 1, 6, 4, 4, 32, 4), 0o664, 0o604},
		"rights unknown":          {list(1, 6, 4, 12, 32, 4), 0o664, 0o604},
		"twice the group":         {list(1, 6, 4, 4, 4, 6, 32, 4), 0o664, 0o604},
		"another order":           {list(1, 6, 4, 4, 2, 6, 16, 6, 32, 4), 0o664, 0o604},
		"named, and no mask":      {list(1, 6, 2, 6, 4, 4, 32, 4), 0o664, 0o604},
		"no owner":                {list(4, 4, 32, 4), 0o664, 0o604},
		"no group":                {list(1, 6, 16, 6, 32, 4), 0o664, 0o604},
		"nobody else, and no end": {list(1, 6, 2, 6, 4, 4, 16, 6), 0o664, 0o604},
	} {
		if got := without(tc.acl, tc.perm); got != tc.want {
			t.Errorf("%s: without(%x, %o) = %o, want %o", name, tc.acl, tc.perm, got, tc.want)
		}
	}
}

// Whether a list has made the mode what it is can be unknown.
func TestTraitsWithoutALook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chmod(path, 0o664))
	info, statErr := os.Stat(path)
	if err = errors.Join(err, statErr); err != nil {
		t.Fatal(err)
	}
	if got := traitsOf(info, path+"x"); got.perm != 0o604 || got.acl != nil {
		t.Errorf("traits of a file that cannot be looked at: %o, %x", got.perm, got.acl)
	}
}

// Who may write to the directory may put a link in place of a temporary file. What
// it leads to is not given away.
func TestTraitsFollowNoLink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	tmp, err := os.CreateTemp(dir, ".state.tmp-*")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(victim, nil, 0o600), os.Remove(tmp.Name()), os.Symlink(victim, tmp.Name()))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(traits{perm: 0o664, acl: list(1, 6, 2, 6, 4, 4, 16, 6, 32, 4)}.give(tmp), tmp.Close()); err != nil {
		t.Error(err)
	}
	if n, err := syscall.Getxattr(victim, accessACL, nil); err == nil {
		t.Errorf("the file behind the link has a list of %d bytes", n)
	}
	if info, err := os.Stat(victim); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file behind the link: %v, %v", info.Mode(), err)
	}
}
