package renderd

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// Memory that cannot be given back is no trouble: it is said once, and not as an
// error.
func TestReleaseThatFails(t *testing.T) {
	var out bytes.Buffer
	tries := 0
	release := releases(func() error { tries++; return errors.New("no /proc") }, slog.New(slog.NewTextHandler(&out, nil)))
	release()
	release()
	if tries != 2 || strings.Count(out.String(), "level=INFO") != 1 || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%d tries, and the log says:\n%s", tries, &out)
	}
}
