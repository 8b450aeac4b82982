package responderd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"

	"hadrain/internal/cmdline"
)

// sockets are the listeners by what they are for.
type sockets struct {
	agent, http []net.Listener
}

// sockets takes the listeners that systemd passed, or opens those of the flags.
func (o *options) sockets(ctx context.Context, given func(flag string) bool) (*sockets, error) {
	s := &sockets{}
	var err error
	if files := activation.Files(true); len(files) > 0 {
		err = s.inherit(ctx, files, o, given)
	} else {
		err = s.open(ctx, o)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sockets) close() {
	for _, l := range append(s.agent, s.http...) {
		_ = l.Close() // on the way out with another error
	}
}

// inherit sorts the sockets that systemd passed by their names.
func (s *sockets) inherit(ctx context.Context, files []*os.File, o *options, given func(flag string) bool) error {
	var errs []error
	for _, file := range files {
		errs = append(errs, s.add(file), file.Close())
	}
	switch err := errors.Join(errs...); {
	case err != nil:
		return err
	case len(s.agent) == 0:
		return cmdline.Usage(errors.New("systemd passed no socket for agent checks: start the .socket unit with FileDescriptorName=agent as well"))
	case given("listen"):
		return cmdline.Usage(errors.New("--listen (HADRAIN_LISTEN) given, but systemd passed the sockets: use ListenStream= in the .socket unit"))
	case given("http.listen") && len(s.http) > 0:
		return cmdline.Usage(errors.New("--http.listen (HADRAIN_HTTP_LISTEN) given, but systemd passed a socket named http: use ListenStream= in its .socket unit"))
	case given("http.listen"):
		return s.openHTTP(ctx, o.httpListen)
	}
	return nil
}

// add takes one socket over. The activation package would drop what is no
// listener without a word.
func (s *sockets) add(file *os.File) error {
	if err := checkListener(file); err != nil {
		return cmdline.Usage(fmt.Errorf("socket %q from systemd: %w", file.Name(), err))
	}
	l, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("taking over socket %q from systemd: %w", file.Name(), err)
	}
	switch name := file.Name(); {
	case name == "http":
		s.http = append(s.http, l)
	// The activation package calls a socket without a name LISTEN_FD_<n>, and
	// systemd calls it "unknown".
	case name == "agent", name == "unknown", strings.HasPrefix(name, "LISTEN_FD_"):
		s.agent = append(s.agent, l)
	default:
		_ = l.Close() // the error below ends the program
		return cmdline.Usage(fmt.Errorf("socket %q from systemd: unknown name, want FileDescriptorName=agent or http", name))
	}
	return nil
}

func checkListener(file *os.File) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var kind, accepts int
	var kindErr, acceptErr error
	err = conn.Control(func(fd uintptr) {
		kind, kindErr = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE)
		accepts, acceptErr = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	})
	switch {
	case err != nil:
		return err
	case errors.Is(kindErr, syscall.ENOTSOCK):
		return errors.New("not a socket, want ListenStream=")
	case kindErr != nil:
		return kindErr
	case kind != syscall.SOCK_STREAM:
		return errors.New("not a stream socket, want ListenStream=")
	case acceptErr != nil:
		return acceptErr
	case accepts == 0:
		return errors.New("not a listening socket, want ListenStream= and Accept=no")
	}
	return nil
}

// open opens the listeners of the flags.
func (s *sockets) open(ctx context.Context, o *options) error {
	if len(o.listen) == 0 {
		return cmdline.Usage(errors.New("--listen is empty, want an address such as 127.0.0.1:9777"))
	}
	for _, address := range o.listen {
		l, err := listen(ctx, address)
		if err != nil {
			return err
		}
		s.agent = append(s.agent, l)
	}
	return s.openHTTP(ctx, o.httpListen)
}

func (s *sockets) openHTTP(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	l, err := listen(ctx, address)
	if err != nil {
		return err
	}
	s.http = append(s.http, l)
	return nil
}

// listen opens a TCP listener at host:port, or a unix one at a path.
func listen(ctx context.Context, address string) (net.Listener, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
		if err := removeStale(ctx, address); err != nil {
			return nil, err
		}
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, cmdline.Usage(fmt.Errorf("listening on %q: want host:port or the path of a unix socket", address))
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return l, nil
}

// removeStale removes the socket of a process that is no more.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listening on %s: %w", path, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listening on %s: there is something that is not a socket", path)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(fmt.Errorf("listening on %s: another process does", path), conn.Close())
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("listening on %s: %w", path, err)
	}
	return nil
}
