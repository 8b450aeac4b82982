package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
	"hadrain/internal/desired"
)

// queryDocument is what -o json prints for query.
type queryDocument struct {
	Schema   int    `json:"schema"`
	Address  string `json:"address"`
	Question string `json:"question"` // without its newline
	Answer   string `json:"answer"`   // without its newline, e.g. "drain 100%"
}

func queryCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "query KEY...", Short: "Ask the responder as HAProxy does", Long: queryLong, Example: queryExample,
		Args: needOperands, ValidArgsFunction: completeKeys,
	}
	addr := cmd.Flags().String("addr", "127.0.0.1:9777", "address of the responder: host:port, or the path of a unix socket")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.check(); err != nil {
			return err
		}
		for _, arg := range args {
			if err := checkQuestion(arg); err != nil {
				return cmdline.Usage(err)
			}
		}
		question := strings.Join(args, " ")
		ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
		defer cancel()
		answer, err := ask(ctx, *addr, question)
		if err != nil {
			return fmt.Errorf("asking the responder at %s: %w; does hadrain-responder run there? (--addr)", *addr, err)
		}
		if a.json() {
			return printJSON(cmd.OutOrStdout(), queryDocument{Schema: schema, Address: *addr, Question: question, Answer: answer})
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), answer)
		return err
	}
	return cmd
}

// checkQuestion takes keys and the option words of agent-send.
func checkQuestion(arg string) error {
	switch arg {
	case "+up", "-up", "-weight":
		return nil
	}
	if err := desired.CheckKey(arg); err != nil {
		return fmt.Errorf("operand %q: %w; want a key such as web/web-01 or canary", arg, err)
	}
	return nil
}

// ask sends one line and returns the answer without its newline.
func ask(ctx context.Context, addr, question string) (string, error) {
	network := "tcp"
	if strings.Contains(addr, "/") {
		network = "unix"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends a read at once
	defer stop()
	if _, err := io.WriteString(conn, question+"\n"); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(io.LimitReader(conn, maxAnswer)).ReadString('\n')
	shown := desired.Printable(strings.TrimRight(answer, "\r\n"))
	switch {
	case ctx.Err() != nil:
		return "", errors.New("no answer in time")
	case errors.Is(err, io.EOF):
		return "", fmt.Errorf("it answers \"%s\" and ends, which is no whole line", shown)
	case err != nil:
		return "", err
	case strings.HasPrefix(answer, "HTTP/"):
		return "", fmt.Errorf("it answers \"%s\", which is HTTP: agent checks have a port of their own, by default 9777", shown)
	case !isAnswer(shown):
		return "", fmt.Errorf("it answers \"%s\", which no agent does", shown)
	}
	return shown, nil
}

// maxAnswer is how much is read of an answer, in bytes.
const maxAnswer = 4096

var weightOrLimit = regexp.MustCompile(`^(\d+%|(weight|maxconn):\d+%?)$`)

// isAnswer reports whether line is what an agent answers, be it ours or another:
// at least one word, before any comment, and only words that HAProxy knows
// (tcpcheck_agent_expect_reply in its src/tcpcheck.c) or that our responder says.
func isAnswer(line string) bool {
	line, _, _ = strings.Cut(line, "#")
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	for _, word := range words {
		switch strings.ToLower(word) {
		case "ready", "drain", "maint", "up", "down", "fail", "failed", "stopped":
		case "hold", strings.TrimSpace(desired.ReplyUnsynced), strings.TrimSpace(desired.ReplyNoNewline):
		default:
			if !weightOrLimit.MatchString(word) {
				return false
			}
		}
	}
	return len(words) > 0
}
