package statefile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
)

// A file edited in place to another good one of the same size is another file.
func TestReaderSeesAnEditInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	write(t, path, desired.Drain)
	r := statefile.NewReader(path)
	if _, _, err := r.Look(); err != nil {
		t.Fatal(err)
	}
	other := write(t, filepath.Join(t.TempDir(), "other"), desired.Maint)
	must(t, os.WriteFile(path, other, 0o644))
	must(t, statefile.Touch(path, time.Now().Add(time.Minute)))
	if f, _, err := r.Look(); err != nil || f == nil || f.State(0) != desired.Maint {
		t.Errorf("Look = %+v, %v, want the state maint", f, err)
	}
}

// An edit by hand that leaves the last line and the size as they were is refused.
func TestReaderRefusesAnEditOfTheSameSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	data := write(t, path, desired.Drain)
	must(t, statefile.Touch(path, time.Now().Add(-time.Hour)))
	r := statefile.NewReader(path)
	if _, _, err := r.Look(); err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(path, bytes.Replace(data, []byte("drain"), []byte("ready"), 1), 0o644))
	for range 2 {
		if f, _, err := r.Look(); err == nil || f != nil {
			t.Fatalf("Look = %v, %v, want an error", f, err)
		}
	}
	must(t, statefile.Touch(path, time.Now().Add(-time.Minute)))
	if f, _, err := r.Look(); err == nil || f != nil {
		t.Errorf("Look after a touch of the edited file = %v, %v, want an error", f, err)
	}
}

// Neither is it taken for untouched because its modification time was put back.
func TestReaderRefusesAnEditThatHidesItsTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	data := write(t, path, desired.Drain)
	at := time.Now().Add(-time.Hour)
	must(t, statefile.Touch(path, at))
	r := statefile.NewReader(path)
	if _, _, err := r.Look(); err != nil {
		t.Fatal(err)
	}
	edit := func(data []byte) {
		t.Helper()
		before := changed(t, path)
		// Until the file system's clock has ticked.
		for deadline := time.Now().Add(5 * time.Second); changed(t, path) == before && time.Now().Before(deadline); {
			must(t, os.WriteFile(path, data, 0o644))
			must(t, statefile.Touch(path, at))
		}
	}
	edit(bytes.Replace(data, []byte("drain"), []byte("ready"), 1))
	for range 2 {
		if f, _, err := r.Look(); err == nil || f != nil {
			t.Fatalf("Look = %v, %v, want an error", f, err)
		}
	}
	edit(data)
	if _, _, err := r.Look(); err != nil {
		t.Errorf("Look at the mended file: %v", err)
	}
	must(t, os.Chmod(path, 0o600))
	if _, _, err := r.Look(); err != nil {
		t.Errorf("Look after another change of the good file: %v", err)
	}
}

// changed is when anything about a file changed last.
func changed(t *testing.T, path string) syscall.Timespec {
	t.Helper()
	var stat syscall.Stat_t
	must(t, syscall.Stat(path, &stat))
	return stat.Ctim
}
