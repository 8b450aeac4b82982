package agentcheck_test

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/agentcheck"
)

func TestRespondAllocatesNothing(t *testing.T) {
	for _, q := range []string{"web/a canary", "+up web/c canary", "-weight nobody", "", "web/a -x"} {
		question := []byte(q)
		if n := testing.AllocsPerRun(100, func() { respond(question) }); n != 0 {
			t.Errorf("Respond(%q): %v allocations, want 0", q, n)
		}
	}
}

// A whole check, from accept to close, allocates nothing in this process. The
// peer makes its system calls itself, for net.Dial would allocate.
func TestCheckAllocatesNothing(t *testing.T) {
	s, addr := start(t, agentcheck.Config{})
	to := sockaddr(t, addr)
	check(t, to)
	if n := testing.AllocsPerRun(200, func() { check(t, to) }); n >= 1 {
		t.Errorf("%v allocations a check, want 0", n)
	}
	if open := s.Stats().Open; open > 300 {
		t.Errorf("%d connections open", open)
	}
}

func sockaddr(t testing.TB, addr string) *syscall.SockaddrInet4 {
	t.Helper()
	tcp, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(tcp.IP.To4())}
}

var (
	question = []byte("web/c canary\n")
	noLinger = &syscall.Linger{Onoff: 1}
	received [64]byte // on the heap once and for all
)

// check asks as HAProxy does: it closes with a reset once it has the answer.
func check(t testing.TB, to *syscall.SockaddrInet4) {
	fd, err := connect(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Write(fd, question); err != nil {
		t.Fatal(err)
	}
	n, err := syscall.Read(fd, received[:])
	if err != nil || string(received[:n]) != "drain 100%\n" {
		t.Fatalf("got %q, %v, want drain 100%%", received[:n], err)
	}
	if err := hangUp(fd); err != nil {
		t.Fatal(err)
	}
}

// connect leaves it to the question to finish the handshake, so that it is
// there when the connection is accepted.
func connect(to *syscall.SockaddrInet4) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 0); err != nil {
		return 0, err
	}
	return fd, syscall.Connect(fd, to)
}

// hangUp closes with a reset.
func hangUp(fd int) error {
	if err := syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, noLinger); err != nil {
		return err
	}
	return syscall.Close(fd)
}

func BenchmarkRespond(b *testing.B) {
	q := []byte("web/gke-cny-web canary")
	b.ReportAllocs()
	for b.Loop() {
		respond(q)
	}
}

func BenchmarkCheck(b *testing.B) {
	_, addr := start(b, agentcheck.Config{})
	to := sockaddr(b, addr)
	b.ReportAllocs()
	for b.Loop() {
		check(b, to)
	}
}

// BenchmarkGoroutine is the plain way, to compare with.
func BenchmarkGoroutine(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Second))
				var buf [512]byte
				n, err := c.Read(buf[:])
				if err != nil || n == 0 {
					return
				}
				_, _ = io.WriteString(c, respond(buf[:n-1]).Reply)
				_, _ = c.Read(buf[:])
			}()
		}
	}()
	b.Cleanup(func() { l.Close(); <-done })
	to := sockaddr(b, l.Addr().String())
	b.ReportAllocs()
	for b.Loop() {
		check(b, to)
	}
}
