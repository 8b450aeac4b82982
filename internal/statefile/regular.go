package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ReadRegular returns the content of a regular file of at most the given number
// of bytes. Other than [os.ReadFile] it neither waits for somebody to write to a
// named pipe nor fills the memory with what is there by mistake. An error names
// the file.
func ReadRegular(path string, most int64) ([]byte, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := readAtMost(f, info.Size(), most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// Holds reports whether the regular file at path holds exactly data. It takes no
// memory for the file.
func Holds(path string, data []byte) (bool, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if info.Size() != int64(len(data)) {
		return false, nil
	}
	var part [32 << 10]byte
	for {
		n, err := f.Read(part[:])
		if n > len(data) || !bytes.Equal(part[:n], data[:n]) {
			return false, nil
		}
		data = data[n:]
		if err == io.EOF {
			return len(data) == 0, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", path, err)
		}
	}
}

// openRegular opens a file to read, if it is a regular one. An error names it.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	// Without O_NONBLOCK a named pipe would hold this goroutine until somebody
	// writes to it, also past the end of the program's context.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file (%s)", path, info.Mode().Type())
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// readAtMost reads f into one buffer of the size that is expected, because that
// may stay in memory: io.ReadAll allocates several, and keeps one that is too
// large. More than most bytes are an error: f may have grown, or has no size, as
// in /proc.
func readAtMost(f io.Reader, size, most int64) ([]byte, error) {
	tooLarge := fmt.Errorf("larger than %d bytes", most)
	if size > most {
		return nil, tooLarge
	}
	var b bytes.Buffer
	b.Grow(int(size) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, most+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > most {
		return nil, tooLarge
	}
	return b.Bytes(), nil
}
