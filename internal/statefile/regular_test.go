package statefile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hadrain/internal/statefile"
)

func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		most int64
		want string // in the content, or in the error
		ok   bool
	}{
		{file, 5, "12345", true},
		{link, 5, "12345", true},
		{file, 4, file + ": larger than 4 bytes", false},
		{"/proc/self/status", 1 << 20, "Name:", true},
		{"/proc/self/status", 4, "larger than 4 bytes", false},
		{pipe, 5, pipe + ": not a regular file (p---------)", false},
		{dir, 5, dir + ": not a regular file (d---------)", false},
		{"/dev/zero", 5, "not a regular file", false},
		{file + "x", 5, "no such file", false},
	} {
		data, err := statefile.ReadRegular(tc.path, tc.most)
		got := string(data)
		if err != nil {
			got = err.Error()
		}
		if (err == nil) != tc.ok || !strings.Contains(got, tc.want) {
			t.Errorf("ReadRegular(%s, %d) = %q, %v; want %q", tc.path, tc.most, data, err, tc.want)
		}
	}
}

func TestHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	large := bytes.Repeat([]byte("0123456789"), 10_000)
	other := bytes.Clone(large)
	other[len(other)-1] = 'x'
	for _, tc := range []struct {
		file, data []byte
		want       bool
	}{{nil, nil, true}, {large, large, true}, {large, other, false}, {large, large[:99_999], false}, {nil, large, false}, {large, nil, false}} {
		must(t, os.WriteFile(path, tc.file, 0o644))
		if got, err := statefile.Holds(path, tc.data); err != nil || got != tc.want {
			t.Errorf("Holds of %d bytes with %d = %t, %v, want %t", len(tc.file), len(tc.data), got, err, tc.want)
		}
	}
	if _, err := statefile.Holds(filepath.Dir(path), nil); err == nil {
		t.Error("a directory is read")
	}
}
