package render

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/statefile"
)

// What does not go away is one line, although each attempt has a temporary file of its own.
func TestTroubleIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	l := &loop{log: slog.New(slog.NewTextHandler(&log, nil))}
	path := filepath.Join(t.TempDir(), "missing", "state")
	for range 3 {
		l.logTrouble(statefile.Write(path, nil))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), path) || !strings.Contains(log.String(), "no such file") {
		t.Errorf("%d lines, want 1:\n%s", n, log.String())
	}
	l.logTrouble(nil)
	if !strings.HasSuffix(log.String(), "\n") || strings.Count(log.String(), "current again") != 1 {
		t.Errorf("the end of it:\n%s", log.String())
	}
}
