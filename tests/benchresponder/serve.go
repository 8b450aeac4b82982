package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"hadrain/internal/desired"
)

// The variants that this program serves itself, by their first argument. The
// next one is the port.
const (
	serveGoroutines = "serve-goroutines"
	serveShells     = "serve-shells"
)

var serveVerbs = map[string]func(args []string) error{
	serveGoroutines: func(args []string) error {
		states := map[string]string{}
		for i := range sizes[file10k] {
			states[key(i)] = desired.State(i % 3).Reply(0)
		}
		return serve(args[0], func(c *net.TCPConn) { answerPlainly(c, states) })
	},
	serveShells: func(args []string) error {
		return serve(args[0], func(c *net.TCPConn) { answerByShell(c, args[1]) })
	},
}

// serve calls answer in a goroutine for each connection, and closes it then.
func serve(port string, answer func(*net.TCPConn)) error {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = c.Close() }() // the peer has closed
			if tcp, ok := c.(*net.TCPConn); ok {
				answer(tcp)
			}
		}()
	}
}

// answerPlainly is what one writes in an afternoon.
func answerPlainly(c *net.TCPConn, states map[string]string) {
	if c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	if err != nil {
		return
	}
	reply := desired.Ready.Reply(0)
	for key := range strings.FieldsSeq(line) {
		if found, ok := states[key]; ok {
			reply = found
			break
		}
	}
	if _, err := io.WriteString(c, reply); err != nil {
		return
	}
	_, _ = r.ReadByte() // until the peer closes
}

// shell answers for the first key of the question; systemd would start it with
// the connection as standard input and output.
const shell = `read -r key rest
set -- $(grep -m 1 "^$key " "$0")
echo "${2:-ready} 100%"
read -r closed`

func answerByShell(c *net.TCPConn, state string) {
	file, err := c.File()
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command("/bin/sh", "-c", shell, state)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, file, os.Stderr
	_ = cmd.Run() // it ends with the status of the last read
}
