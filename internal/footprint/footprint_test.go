package footprint_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"hadrain/internal/footprint"
)

// The test itself is a program that has started.
func TestRelease(t *testing.T) {
	before := resident(t)
	if err := footprint.Release(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after > before*3/4 {
		t.Errorf("%d KiB of files resident, before %d: want at most three quarters", after, before)
	}
}

// resident returns how much of files is in this process's memory, in KiB.
func resident(t *testing.T) (kib int) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(data, []byte("RssFile:"))
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		t.Fatalf("RssFile of /proc/self/status: %v", err)
	}
	return kib
}

// Distributions build programs as PIE. Their loader writes into tables of
// constants: without them the program would crash.
func TestReleaseOfPIE(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pie")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=pie", "-o", program, "./testdata/pie")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if err != nil || string(out) != "goes on\n" {
		t.Errorf("%v, %q", err, out[:min(len(out), 1000)])
	}
}
