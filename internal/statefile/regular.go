package statefile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ReadRegular returns the content of a regular file of at most the given number
// of bytes. Other than [os.ReadFile] it neither waits for somebody to write to a
// named pipe nor fills the memory with what is there by mistake. An error names
// the file.
func ReadRegular(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file (%s)", path, info.Mode().Type())
	}
	tooLarge := fmt.Errorf("%s: larger than %d bytes", path, most)
	if info.Size() > most {
		return nil, tooLarge
	}
	var b bytes.Buffer
	b.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, most+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > most {
		return nil, tooLarge // it grew meanwhile, or has no size, as in /proc
	}
	return b.Bytes(), nil
}
