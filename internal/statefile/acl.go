package statefile

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math/bits"
	"syscall"
)

// accessACL is the attribute that Linux keeps access control lists in.
const accessACL = "system.posix_acl_access"

// readACL returns the access control list of the file called name, nil if there
// is none.
func readACL(name string) ([]byte, error) {
	size, err := syscall.Getxattr(name, accessACL, nil)
	if noACL(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	acl := make([]byte, size)
	size, err = syscall.Getxattr(name, accessACL, acl)
	return acl[:max(size, 0)], err
}

// noACL reports whether err says that a file, or a file system, has no list.
func noACL(err error) bool {
	return errors.Is(err, syscall.ENODATA) || errors.Is(err, syscall.EOPNOTSUPP)
}

// The tags of entries, in their order in a list: <linux/posix_acl.h>.
const (
	tagOwner = 1 << iota
	tagUser
	tagOwningGroup
	tagGroup
	tagMask
	tagOther
)

// without returns the mode of a file that had the mode perm and the access control
// list acl, and has that list no more: nobody gets a right that the list did not
// give them, also those that it names to give them less. A list that is not as
// acl(5) and <linux/posix_acl_xattr.h> have it leaves the group nothing.
func without(acl []byte, perm fs.FileMode) fs.FileMode {
	none := perm &^ 0o070
	if len(acl)%8 != 4 || binary.LittleEndian.Uint32(acl) != 2 {
		return none
	}
	var seen, last uint16
	group, named, mask := uint16(0), uint16(7), uint16(7)
	for entry := acl[4:]; len(entry) > 0; entry = entry[8:] {
		tag, rights := binary.LittleEndian.Uint16(entry), binary.LittleEndian.Uint16(entry[2:])
		again := tag == last && tag&(tagUser|tagGroup) != 0
		if bits.OnesCount16(tag) != 1 || tag > tagOther || tag <= last && !again || rights > 7 {
			return none
		}
		switch tag {
		case tagUser, tagGroup:
			named &= rights
		case tagOwningGroup:
			group = rights
		case tagMask:
			mask = rights
		}
		seen, last = seen|tag, tag
	}
	needed := uint16(tagOwner | tagOwningGroup | tagOther)
	if seen&(tagUser|tagGroup) != 0 {
		needed |= tagMask
		named &= mask
	}
	if seen&needed != needed {
		return none
	}
	return none&^0o007 | fs.FileMode(group&mask&named)<<3 | perm&fs.FileMode(named)
}
