package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hadrain/internal/cli"
	"hadrain/internal/cmdline"
)

// onTerminal runs one command line with a terminal for both outputs, or for
// standard output alone, and returns what is on it.
func onTerminal(t *testing.T, both bool, args ...string) (code int, shown, stderr string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	var stderrTo io.Writer = &errs
	if both {
		stderrTo = tty
	}
	err = cmdline.Run(t.Context(), cli.Command(), args, func(string) (string, bool) { return "", false }, tty, stderrTo)
	_ = tty.Close()
	text, _ := io.ReadAll(master) // ends with EIO, once nobody has the other end
	return cmdline.Code(err), string(text), errs.String()
}

// On a terminal the preview is the table; where messages go elsewhere, the
// result has its own.
func TestTableOnce(t *testing.T) {
	addr, _ := startStore(t, func(*http.Request) {})
	for _, tc := range []struct {
		both            bool
		what            string
		tables, results int
	}{
		{true, "written: 1 change", 1, 0},
		{true, "nothing to do: already drain", 1, 0},
		{false, "", 1, 1},
	} {
		code, shown, stderr := onTerminal(t, tc.both, "drain", "canary", "--yes", "--consul-addr", addr, "--responder", addr)
		if code != 0 || strings.Count(shown, "KEY ") != tc.tables || strings.Count(shown, "STATE ") != tc.results || !strings.Contains(shown, tc.what) {
			t.Errorf("exit status %d, on the terminal:\n%s\nstderr:\n%s", code, shown, stderr)
		}
	}
	if code, shown, _ := onTerminal(t, true, "drain", "canary", "--yes", "-o", "json", "--consul-addr", addr, "--responder", addr); code != 0 || !strings.Contains(shown, `"applied": false`) {
		t.Errorf("-o json: exit status %d:\n%s", code, shown)
	}
}
