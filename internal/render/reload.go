package render

import "github.com/coreos/go-systemd/v22/daemon"

// reload reads again what was read at the start, other than the flags. What
// fails is logged and counted, and the one before stays in use.
func (l *loop) reload() {
	if l.told {
		// Before READY=1 this would end the start for systemd.
		l.cfg.Notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
		defer l.cfg.Notify(daemon.SdNotifyReady)
	}
	failed := false
	if err := l.reconnect(); err != nil {
		failed = true
		l.log.Error("reloading: the certificates before stay in use", "error", err)
	}
	for _, a := range l.appliers {
		p, err := readProgram(a.Template, l.cfg.Root)
		if err != nil {
			failed = true
			a.log.Error("reloading: the template before stays in use", "error", err)
		}
		a.renew(renewal{p, err})
	}
	l.metrics.reloaded(failed)
	if !failed {
		l.log.Info("reloaded", "templates", len(l.appliers))
	}
}
