package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// maxReply bounds one answer in bytes. "show stat" takes about 600 bytes a
// row, so this is room for some 100,000 servers.
const maxReply = 64 << 20

// ErrRefused is wrapped by the error of a command that HAProxy answered with
// a refusal: unknown in this version, or above the level of the socket.
var ErrRefused = errors.New("refused by haproxy")

// refusals are the first words of HAProxy's answers to a command that it did
// not run (src/cli.c: cli_permission_denied_msg and cli_gen_usage_msg).
var refusals = []string{"Unknown command", "Permission denied"}

// Command sends one command to the runtime socket at addr and returns the
// whole answer without its final empty line.
//
// addr is what a "stats socket" line of haproxy.cfg names: an absolute path or
// unix@PATH for a Unix socket, HOST:PORT (also ipv4@ and ipv6@) for TCP. The
// end of ctx ends the exchange; a ctx without a deadline waits as long as
// HAProxy does. Errors name the socket and the command.
func Command(ctx context.Context, addr, cmd string) (string, error) {
	answer, err := exchange(ctx, addr, cmd)
	if err != nil {
		return "", fmt.Errorf("haproxy socket %s: %q: %w", addr, cmd, err)
	}
	return answer, nil
}

func exchange(ctx context.Context, addr, cmd string) (string, error) {
	// A line end would let an operand smuggle in a second command.
	if cmd == "" || strings.ContainsAny(cmd, "\r\n\x00") {
		return "", errors.New("a command is one line of text")
	}
	network, address, err := splitAddr(addr)
	if err != nil {
		return "", err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	answer, err := converse(conn, cmd)
	if ctx.Err() != nil && err != nil {
		return "", fmt.Errorf("no complete answer: %w", context.Cause(ctx))
	}
	if err != nil {
		return "", err
	}
	return answer, refusal(answer)
}

// converse writes the command and reads to the end of the stream: without
// "prompt" HAProxy closes the connection after one answer.
func converse(conn net.Conn, cmd string) (string, error) {
	if _, err := io.WriteString(conn, cmd+"\n"); err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(conn, maxReply+1))
	if err != nil {
		return "", err
	}
	if len(raw) > maxReply {
		return "", fmt.Errorf("answer is larger than %d bytes", maxReply)
	}
	// HAProxy ends each answer with an empty line; an answer without one was
	// cut, for example by a worker that died while writing.
	if len(raw) == 0 || raw[len(raw)-1] != '\n' {
		return "", fmt.Errorf("answer ends in the middle after %d bytes: %w", len(raw), io.ErrUnexpectedEOF)
	}
	return strings.TrimSuffix(string(raw), "\n"), nil
}

func refusal(answer string) error {
	line, _, _ := strings.Cut(answer, "\n")
	for _, word := range refusals {
		if strings.HasPrefix(line, word) {
			return fmt.Errorf("%w: %s", ErrRefused, line)
		}
	}
	return nil
}

// splitAddr turns the address of a "stats socket" line into what net.Dial takes.
func splitAddr(addr string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(addr, "unix@"); ok {
		return "unix", path, nil
	}
	if strings.HasPrefix(addr, "/") || strings.HasPrefix(addr, "./") {
		return "unix", addr, nil
	}
	network, address = "tcp", addr
	for prefix, n := range map[string]string{"ipv4@": "tcp4", "ipv6@": "tcp6"} {
		if rest, ok := strings.CutPrefix(addr, prefix); ok {
			network, address = n, rest
		}
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", "", fmt.Errorf("want an absolute path or HOST:PORT: %w", err)
	}
	return network, address, nil
}
