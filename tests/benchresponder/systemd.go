package main

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// systemd answers without a daemon, as one does who has only systemd and a
// shell: a socket with Accept=yes. For each check systemd makes a unit with a
// control group, and starts the shell in it.
type systemd struct{ machine *testpeer.Machine }

// unitPort is in a network namespace of its own.
const unitPort = 9777

var unitFiles = map[string]string{
	"/etc/systemd/system/check.socket": "[Socket]\nListenStream=127.0.0.1:" + strconv.Itoa(unitPort) +
		"\nAccept=yes\nBacklog=4096\nMaxConnections=4096\nTriggerLimitIntervalSec=0\n",
	"/etc/systemd/system/check@.service": "[Unit]\nCollectMode=inactive-or-failed\n" +
		"[Service]\nExecStart=-/bin/sh /etc/check/answer\nStandardInput=socket\n",
	"/etc/check/answer": strings.ReplaceAll(shell, "$0", "/etc/check/state"),
}

// withSystemd calls f once, with a systemd that was booted for it if there can
// be one: that needs root and systemd-nspawn.
func (b *bench) withSystemd(f func() error) (err error) {
	called := false
	// What boots a machine is made for tests.
	testing.Init()
	testing.Benchmark(func(tb *testing.B) {
		if called {
			return
		}
		m := testpeer.NewMachine(tb, "/")
		for path, text := range unitFiles {
			m.WriteFile(tb, path, text)
		}
		m.Install(tb, b.path(file10k), "/etc/check/state", 0o644)
		m.Boot(tb)
		b.systemd, called = &systemd{m}, true
		err = f()
	})
	if called {
		return err
	}
	b.progress("no systemd can be booted here: a shell each stands for it")
	return f()
}

func (s *systemd) start(v variant) (*server, error) {
	pid := s.machine.Leader()
	srv := &server{variant: v, pid: pid, port: unitPort, enter: []string{"nsenter", "-t", strconv.Itoa(pid), "-n"}}
	srv.stop = func() error { return s.systemctl("stop") }
	return srv, s.systemctl("start")
}

func (s *systemd) systemctl(verb string) error {
	out, err := s.machine.Try("systemctl", verb, "check.socket")
	if err != nil {
		return errors.Join(err, errors.New(out))
	}
	return nil
}
