package responder

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"hadrain/internal/agentcheck"
)

// staleBeat is the age from which on an accept loop counts as stuck, whatever
// the watchdog's period: an idle one turns every second.
const staleBeat = 3 * time.Second

// A notifier tells systemd about the daemon, see sd_notify(3).
type notifier struct {
	send     func(state string)
	watchdog time.Duration
	agent    *agentcheck.Server
	summary  func() string // the line that systemctl status shows
}

func newNotifier(cfg Config, agent *agentcheck.Server, summary func() string) *notifier {
	n := &notifier{send: cfg.Notify, watchdog: cfg.Watchdog, agent: agent, summary: summary}
	if n.send == nil {
		n.send, n.watchdog = func(string) {}, 0
	}
	return n
}

func (n *notifier) ready() { n.send(daemon.SdNotifyReady + "\nSTATUS=" + n.summary()) }

func (n *notifier) reloading() {
	n.send(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
}

// run feeds the watchdog while the accept loops turn, until ctx ends.
func (n *notifier) run(ctx context.Context) {
	defer n.send(daemon.SdNotifyStopping)
	if n.watchdog <= 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(n.watchdog / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(n.agent.Beat()) < max(n.watchdog/2, staleBeat) {
			n.send(daemon.SdNotifyWatchdog + "\nSTATUS=" + n.summary())
		}
	}
}
