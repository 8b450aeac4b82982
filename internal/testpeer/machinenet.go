package testpeer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Dial connects from inside the machine. The address is a literal one: a
// connection belongs to the network name space of the thread that made its
// socket, and resolving names moves to other threads.
func (m *Machine) Dial(network, address string) (net.Conn, error) {
	var conn net.Conn
	err := m.inside(func() (err error) {
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

// inside runs f on a thread that is in the machine's network name space, and
// that ends with it.
func (m *Machine) inside(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread is of no other use
		if err := unix.Setns(int(m.net.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("entering the machine's network: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
