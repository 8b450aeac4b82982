package renderd

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// sendTimeout is how long a message to systemd may wait for room.
const sendTimeout = 250 * time.Millisecond

// A notifier tells systemd how the daemon is, see sd_notify(3). The library
// would wait for ever for a systemd that reads nothing, as it does after a crash
// of its own ("Freezing execution"), and nothing would follow Consul any more.
type notifier struct {
	socket string // "": nobody is to be told
	log    *slog.Logger
	deaf   bool   // the last message found no room
	unsaid string // what was lost and still has to be said
}

func newNotifier(log *slog.Logger) *notifier {
	return &notifier{socket: os.Getenv("NOTIFY_SOCKET"), log: log}
}

// notify gives state up if there is no room for it. Of what is lost only that the
// daemon is ready is said again, with the next message: the rest is news by then.
func (n *notifier) notify(state string) {
	if n.socket == "" {
		return
	}
	if strings.HasPrefix(state, daemon.SdNotifyReloading) {
		n.unsaid = "" // it is said again at the end of the reload
	}
	err := n.send(n.unsaid + state)
	deaf := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case !deaf:
		n.unsaid = "" // other errors are systemd's business
	case state == daemon.SdNotifyReady:
		n.unsaid = state + "\n"
	}
	if deaf && !n.deaf {
		n.log.Warn("systemd takes no messages, going on without", "error", err)
	}
	n.deaf = deaf
}

func (n *notifier) send(text string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // a datagram was sent or not
	if err := conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	return err
}
