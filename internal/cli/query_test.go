package cli_test

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"hadrain/internal/cli"
	"hadrain/internal/cmdline"
)

// What agents say is shown, those of others too, and nothing else is taken for
// an answer.
func TestQueryTakesAnswersOfAgents(t *testing.T) {
	for answer, want := range map[string]string{
		"drain 100%\n":   "",
		"up ready 50%\n": "",
		"hold\n":         "",
		"unsynced\n":     "",
		"no-newline\n":   "",
		"UP, Ready 30% maxconn:5 # a comment\r\n": "",
		"down # the disk is full\n":               "",
		"weight:30%\n":                            "",
		"HTTP/1.1 400 Bad Request\r\nx\r\n":       `it answers "HTTP/1.1 400 Bad Request", which is HTTP`,
		"SSH-2.0-OpenSSH_9.2\r\n":                 `it answers "SSH-2.0-OpenSSH_9.2", which no agent does`,
		"220 mail.example.org ESMTP\r\n":          "which no agent does",
		"50 %\n":                                  "which no agent does",
		"\n":                                      `it answers "", which no agent does`,
		"# ready\n":                               "which no agent does",
		"\x15\x03\x01\x00\x02\x02\x16":            `it answers "\x15\x03\x01\x00\x02\x02\x16" and ends, which is no whole line`,
		strings.Repeat("x", 5000):                 "and ends, which is no whole line",
	} {
		addr := answering(t, answer)
		var out strings.Builder
		err := cmdline.Run(t.Context(), cli.Command(), []string{"query", "canary", "--addr", addr}, func(string) (string, bool) { return "", false }, &out, &out)
		if got := out.String(); want == "" {
			if err != nil || got != strings.TrimSpace(answer)+"\n" {
				t.Errorf("%q: %v, shown as %q", answer, err, got)
			}
		} else if err == nil || !strings.HasPrefix(got, "hadrain: asking the responder at "+addr+": it answers ") || !strings.Contains(got, want) || len(got) > 500 {
			t.Errorf("%q: %v, %q; want an error with %q", answer, err, got, want)
		}
	}
}

// answering returns the address of somebody who answers each line with text.
func answering(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_, _ = conn.Write([]byte(text))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}
