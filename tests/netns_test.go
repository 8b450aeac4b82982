package tests_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// A netns is a network name space.
type netns struct {
	t      *testing.T
	holder *testpeer.Process
}

// newNetns makes a name space, and then runs a script in it.
func newNetns(t *testing.T, script string) *netns {
	t.Helper()
	n := &netns{t: t, holder: testpeer.Start(t, exec.Command("unshare", "--net", "sh", "-ec", script+"; echo up; exec sleep infinity"))}
	n.holder.WaitOutput(t, "up")
	return n
}

// newWire connects two name spaces: 192.0.2.1 and 192.0.2.2. Both know who the
// other is, so that nobody has to ask when no answer arrives.
func newWire(t *testing.T) (here, there *netns) {
	t.Helper()
	if os.Geteuid() != 0 {
		testpeer.Missing(t, "root's rights, to make network name spaces")
	}
	testpeer.Need(t, "tc")
	there = newNetns(t, "ip link set lo up")
	here = newNetns(t, fmt.Sprintf(`
		ip link add wire address 02:00:00:00:00:01 type veth peer name wire address 02:00:00:00:00:02 netns %d
		ip addr add 192.0.2.1/24 dev wire
		ip link set wire up
		ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev wire nud permanent`, there.holder.Pid()))
	for _, words := range []string{
		"addr add 192.0.2.2/24 dev wire", "link set wire up",
		"neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev wire nud permanent",
	} {
		there.run("ip", words)
	}
	return here, there
}

func (n *netns) run(program, words string) {
	n.t.Helper()
	cmd := n.inside(exec.Command(testpeer.Need(n.t, program), strings.Fields(words)...))
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("%s %s: %v\n%s", program, words, err, out)
	}
}

// inside makes cmd run in the name space.
func (n *netns) inside(cmd *exec.Cmd) *exec.Cmd {
	n.t.Helper()
	cmd.Args = append([]string{"nsenter", "-t", strconv.Itoa(n.holder.Pid()), "-n", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = testpeer.Need(n.t, "nsenter")
	return cmd
}

// listen listens on all addresses of the name space. A socket stays in the one in
// which it was made.
func (n *netns) listen() net.Listener {
	n.t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", n.holder.Pid()))
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var l net.Listener
	err = testpeer.InNetwork(file, func() (err error) {
		l, err = net.Listen("tcp4", ":8500")
		return err
	})
	if err != nil {
		n.t.Fatalf("listening in a network name space: %v", err)
	}
	n.t.Cleanup(func() { _ = l.Close() })
	return l
}

// mute drops every packet that would leave the name space, until unmute is called.
// The other end sees a black hole: what drops packets on its own side tells TCP,
// which then does not wait as it would for the network.
func (n *netns) mute() (unmute func()) {
	n.t.Helper()
	// A queue for no packet at all: netem is not in every kernel.
	n.run("tc", "qdisc add dev wire root pfifo limit 0")
	return func() { n.run("tc", "qdisc del dev wire root") }
}

// forward passes connections on to a unix socket.
func forward(l net.Listener, socket string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			defer func() { _ = from.Close() }()
			to, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			defer func() { _ = to.Close() }()
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			_, _ = io.Copy(from, to)
		}()
	}
}
