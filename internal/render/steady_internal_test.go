package render

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A full disk is one line, although each attempt has a temporary file of its own.
func TestTroubleIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	l := &loop{log: slog.New(slog.NewTextHandler(&log, nil))}
	for i := range 3 {
		l.logTrouble(fmt.Errorf("writing /x/state: open /x/.state.tmp-%d: no space left on device", i+98))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "/x/.state.tmp-*: no space left") {
		t.Errorf("%d lines, want 1:\n%s", n, log.String())
	}
	l.logTrouble(nil)
	if !strings.HasSuffix(log.String(), "\n") || strings.Count(log.String(), "current again") != 1 {
		t.Errorf("the end of it:\n%s", log.String())
	}
}
