package testpeer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Dial connects from inside the machine. The address is a literal one: a
// connection belongs to the network name space of the thread that made its
// socket, and resolving names moves to other threads.
func (m *Machine) Dial(network, address string) (net.Conn, error) {
	var conn net.Conn
	err := InNetwork(m.net, func() (err error) {
		dialer := net.Dialer{Timeout: 5 * time.Second}
		conn, err = dialer.Dial(network, address)
		return err
	})
	return conn, err
}

// HTTP returns a client whose connections are made inside the machine. It keeps
// none open.
func (m *Machine) HTTP() *http.Client {
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
				return m.Dial(network, address)
			},
		},
	}
}

// InNetwork runs f on a thread that is in the network name space ns meanwhile.
// The thread must not end with it: processes die with the thread that started
// them, see [Start].
func InNetwork(ns *os.File, f func() error) error {
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer own.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("entering a network name space: %w", err)
	}
	err = f()
	if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
		panic(fmt.Sprintf("leaving a network name space: %v", err)) // every later dial would go wrong
	}
	runtime.UnlockOSThread()
	return err
}
