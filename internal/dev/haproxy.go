package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"hadrain/internal/haproxy"
)

// startGrace is how long HAProxy may take to start or to reload.
const startGrace = 20 * time.Second

// errNoHAProxy says that there is no HAProxy on this machine.
var errNoHAProxy = errors.New("haproxy is not installed")

// haproxyDirs are looked through after the PATH.
var haproxyDirs = []string{"/usr/sbin", "/usr/local/sbin"}

// findHAProxy returns the path of the haproxy binary. Distributions put it in
// an sbin directory, which is often not on the PATH of a user.
func findHAProxy() (string, error) {
	if path, err := exec.LookPath("haproxy"); err == nil {
		return filepath.Abs(path)
	}
	for _, dir := range haproxyDirs {
		if path, err := exec.LookPath(filepath.Join(dir, "haproxy")); err == nil {
			return path, nil
		}
	}
	return "", errNoHAProxy
}

// haproxyServer is a running HAProxy: a master and its workers.
type haproxyServer struct {
	process *process
	socket  string // runtime socket of the current worker
}

// startHAProxy writes the configuration into dir, starts HAProxy on the two
// listeners and returns when its worker answers. The listeners are HAProxy's
// from then on; they are closed here in any case.
func startHAProxy(ctx context.Context, binary, dir string, cfg haproxyConfig, frontend, stats *net.TCPListener) (*haproxyServer, error) {
	defer frontend.Close()
	defer stats.Close()
	cfg.socket = filepath.Join(dir, "haproxy.sock")
	cfg.frontend, cfg.statsPage = frontend.Addr().String(), stats.Addr().String()
	path := filepath.Join(dir, "haproxy.cfg")
	if err := writeConfig(path, cfg); err != nil {
		return nil, err
	}
	files, err := descriptors(frontend, stats)
	if err != nil {
		return nil, err
	}
	defer closeFiles(files)
	cmd := exec.Command(binary, "-W", "-db", "-f", path)
	cmd.ExtraFiles = files // from descriptor 3 on
	p, err := startProcess("haproxy", cmd, filepath.Join(dir, "haproxy.log"))
	if err != nil {
		return nil, err
	}
	h := &haproxyServer{process: p, socket: cfg.socket}
	if err := h.awaitWorker(ctx, 0); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return h, nil
}

func writeConfig(path string, cfg haproxyConfig) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing the configuration of haproxy: %w", err)
	}
	if err := errors.Join(cfg.write(f), f.Close()); err != nil {
		return fmt.Errorf("writing the configuration of haproxy: %w", err)
	}
	return nil
}

func descriptors(listeners ...*net.TCPListener) ([]*os.File, error) {
	var files []*os.File
	for _, l := range listeners {
		f, err := l.File()
		if err != nil {
			closeFiles(files)
			return nil, fmt.Errorf("handing %v to haproxy: %w", l.Addr(), err)
		}
		files = append(files, f)
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// run waits until ctx ends, then stops HAProxy. HAProxy that ends by itself is
// an error.
func (h *haproxyServer) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return h.process.stop()
	case <-h.process.done:
		return h.process.failure()
	}
}

// reloadCommand is what a user would type to reload this HAProxy.
func (h *haproxyServer) reloadCommand() string {
	return fmt.Sprintf("kill -USR2 %d", h.process.started.Pid)
}

// reload makes HAProxy read its configuration again, as `systemctl reload`
// does, and returns when a new worker answers on the socket.
func (h *haproxyServer) reload(ctx context.Context) (before, after int, err error) {
	old, err := haproxy.ReadInfo(ctx, h.socket)
	if err != nil {
		return 0, 0, fmt.Errorf("reloading haproxy: %w", err)
	}
	if err := h.process.signal(syscall.SIGUSR2); err != nil {
		return 0, 0, fmt.Errorf("reloading haproxy: %w", err)
	}
	if err := h.awaitWorker(ctx, old.PID); err != nil {
		return 0, 0, fmt.Errorf("reloading haproxy: %w", err)
	}
	now, err := haproxy.ReadInfo(ctx, h.socket)
	if err != nil {
		return 0, 0, fmt.Errorf("reloading haproxy: %w", err)
	}
	return old.PID, now.PID, nil
}

// awaitWorker returns when a worker other than the process old answers on the
// runtime socket. HAProxy announces that to systemd only, hence the polling.
func (h *haproxyServer) awaitWorker(ctx context.Context, old int) error {
	return h.process.await(ctx, func(ctx context.Context) (string, bool) {
		info, err := haproxy.ReadInfo(ctx, h.socket)
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("worker %d answers", info.PID), info.PID != old && !info.Stopping
	}, startGrace)
}
