package desired

import (
	"errors"
	"fmt"
)

// MaxKey is the greatest length of a key, in bytes.
const MaxKey = 256

// CheckKey returns nil if key can stand in a state file and travel in
// HAProxy's agent-send: printable ASCII (0x21 to 0x7E), 1 to [MaxKey] bytes,
// not starting with '#' (a comment), '+' or '-' (option words), and not ending
// in '/' (a folder of Consul's user interface). The error gives the reason
// without naming the key.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("empty key")
	case len(key) > MaxKey:
		return fmt.Errorf("%d bytes long, at most %d fit", len(key), MaxKey)
	case key[0] == '#', key[0] == '+', key[0] == '-':
		return fmt.Errorf("starts with %q", key[0])
	case key[len(key)-1] == '/':
		return errors.New("ends in '/', which is a folder")
	}
	for i := range len(key) {
		if key[i]-'!' > '~'-'!' { // one comparison: below '!' it wraps around
			return badByte(key[i])
		}
	}
	return nil
}

func badByte(c byte) error {
	switch {
	case c == ' ' || '\t' <= c && c <= '\r':
		return errors.New("white space in the key")
	case c > 0x7f:
		return errors.New("not ASCII")
	}
	return errors.New("control character in the key")
}
