package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// progress writes lines for people to standard error, each with the time.
type progress struct{ w io.Writer }

// Write implements [io.Writer] for whole lines. Standard error that is closed
// is no reason to stop.
func (p progress) Write(lines []byte) (int, error) {
	at := time.Now().Format("15:04:05")
	for line := range strings.Lines(string(lines)) {
		_, _ = fmt.Fprintf(p.w, "%s %s", at, line)
	}
	return len(lines), nil
}

func (p progress) line(format string, args ...any) { _, _ = fmt.Fprintf(p, format+"\n", args...) }

func (p progress) warnings(lines []string) {
	for _, line := range lines {
		p.line("warning: %s", escape(line))
	}
}

// confirm asks on w and returns nil if the answer is exactly "y". Without a
// terminal there is nobody to ask.
func confirm(ctx context.Context, in io.Reader, w io.Writer, question string) error {
	tty, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(tty.Fd())) {
		return refusal(errors.New("standard input is no terminal, so nobody can confirm: add --yes; nothing was written"))
	}
	_, _ = fmt.Fprintf(w, "%s %s y to go on: ", time.Now().Format("15:04:05"), question)
	if err := awaitInput(ctx, tty); err != nil {
		_, _ = fmt.Fprintln(w)
		return refusal(fmt.Errorf("%w; nothing was written", err))
	}
	answer, err := bufio.NewReader(tty).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return refusal(fmt.Errorf("reading the answer: %w; nothing was written", err))
	}
	if answer = strings.TrimRight(answer, "\r\n"); answer != "y" {
		return refusal(fmt.Errorf("declined: the answer was %q, not y; nothing was written", answer))
	}
	return nil
}

// awaitInput returns when a line can be read, or when ctx ends, which a read
// would not notice.
func awaitInput(ctx context.Context, tty *os.File) error {
	fds := []unix.PollFd{{Fd: int32(tty.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 100)
		switch {
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("waiting for the answer: %w", err)
		case n > 0:
			return nil
		}
	}
}
