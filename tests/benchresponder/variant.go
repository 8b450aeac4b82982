package main

import (
	"context"
	_ "embed" // the C programs
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

//go:embed c/floor.c
var floorC string

//go:embed c/load.c
var loadC string

// floorName is the variant that the others are held against.
const floorName = "C epoll, the floor"

// A variant is one way to answer.
type variant struct {
	name   string
	argv   func(port int) []string
	slow   bool   // hundreds of checks a second at most
	reload string // this state file is replaced every second; empty: none is
}

func variants(b *bench) []variant {
	responder := func(state string) func(int) []string {
		return func(port int) []string {
			return []string{b.path("responder"), "--state", b.path(state), "--listen", "127.0.0.1:" + strconv.Itoa(port), "--http.listen", "127.0.0.1:0"}
		}
	}
	all := []variant{
		{name: floorName, argv: func(port int) []string { return []string{b.path("floor"), strconv.Itoa(port)} }},
		{name: "hadrain-responder", argv: responder("state")},
		{name: "reloading 10,000 keys", argv: responder("state"), reload: "state"},
		{name: "reloading 100,000 keys", argv: responder("big"), reload: "big"},
		{name: "Go, a goroutine each", argv: func(port int) []string {
			return []string{os.Args[0], plainVerb, "127.0.0.1:" + strconv.Itoa(port)}
		}},
	}
	if tool, err := exec.LookPath("systemd-socket-activate"); err == nil {
		all = append(all, variant{name: "Accept=yes and grep", slow: true, argv: func(port int) []string {
			return []string{tool, "--accept", "--inetd", "-l", "127.0.0.1:" + strconv.Itoa(port), "/bin/sh", b.path("answer.sh")}
		}})
	}
	return all
}

// answer is what people write in an afternoon: the first key of the question
// that stands in the file answers.
const answer = `read -r keys
for key in $keys; do
	state=$(grep -m 1 "^$key " %s | awk '{print $2}')
	[ -n "$state" ] && break
done
echo "${state:-ready}"
read -r closed
`

// keysOf says how many keys each state file has.
var keysOf = map[string]int{"state": 10_000, "big": 100_000}

// build makes the programs and the files.
func (b *bench) build(ctx context.Context) error {
	if err := b.compile(ctx, "floor", floorC); err != nil {
		return err
	}
	if err := b.compile(ctx, "load", loadC); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.path("responder"), "hadrain/cmd/responder").CombinedOutput(); err != nil {
		return fmt.Errorf("building the responder: %w\n%s", err, out)
	}
	if err := os.WriteFile(b.path("answer.sh"), fmt.Appendf(nil, answer, b.path("state")), 0o644); err != nil {
		return err
	}
	return errors.Join(b.writeState("state", 1), b.writeState("big", 1))
}

func (b *bench) compile(ctx context.Context, name, text string) error {
	cmd := exec.CommandContext(ctx, "cc", "-O2", "-x", "c", "-o", b.path(name), "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling %s.c: %w\n%s", name, err, out)
	}
	return nil
}

// writeState writes the state file of that name.
func (b *bench) writeState(name string, index uint64) error {
	f := &statefile.File{Root: "hadrain", ID: "bench", Index: index, Rendered: time.Now().UTC(), Host: "bench"}
	for i := range keysOf[name] {
		f.Rows = append(f.Rows, desired.Row{Key: fmt.Sprintf("web/server-%05d", i), State: desired.State(i % 3)})
	}
	slices.SortFunc(f.Rows, func(a, b desired.Row) int { return strings.Compare(a.Key, b.Key) })
	return statefile.Write(b.path(name), statefiletest.Format(f))
}

const plainVerb = "serve-plainly"

// plain answers with a goroutine and a net.Conn for each check.
func plain(addr string) error {
	states := map[string]string{}
	for i := range keysOf["state"] {
		states[fmt.Sprintf("web/server-%05d", i)] = desired.Drain.Reply(0)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go answerPlainly(c, states)
	}
}

func answerPlainly(c net.Conn, states map[string]string) {
	defer func() { _ = c.Close() }()
	var b [512]byte
	if c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	n, err := c.Read(b[:])
	if err != nil {
		return
	}
	reply := desired.Ready.Reply(0)
	for key := range strings.FieldsSeq(string(b[:n])) {
		if r, ok := states[key]; ok {
			reply = r
			break
		}
	}
	if _, err := c.Write([]byte(reply)); err != nil {
		return
	}
	_, _ = c.Read(b[:]) // until the peer closes
}
