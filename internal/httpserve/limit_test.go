package httpserve_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hadrain/internal/httpserve"
	"hadrain/internal/testpeer"
)

// ask sends a request and leaves the connection open until the test ends.
func ask(t *testing.T, addr, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // possibly for the second time
	if err := conn.SetDeadline(time.Now().Add(testpeer.Timeout(t))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Who keeps connections open keeps nobody out, and costs no more descriptors
// than are there for them.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	addr := start(t, handler(nil), "")
	var conns []net.Conn
	var readers []*bufio.Reader
	for range 40 {
		conn := ask(t, addr, "/healthz")
		reader := bufio.NewReader(conn)
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("after %d connections: %v", len(conns), err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		conns, readers = append(conns, conn), append(readers, reader)
	}
	closed := make(chan int, len(conns))
	for i, reader := range readers[:39] {
		go func() {
			if _, err := reader.ReadByte(); errors.Is(err, io.EOF) {
				closed <- i
			}
		}()
	}
	for range 8 {
		select {
		case i := <-closed:
			if i > 15 {
				t.Errorf("connection %d of 40 made room, want one of the oldest", i+1)
			}
		case <-time.After(testpeer.Timeout(t)):
			t.Fatal("fewer than 8 of 40 connections made room")
		}
	}
	if _, err := io.WriteString(conns[39], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(readers[39], nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("the last connection: %v, want it to be of use still", err)
	}
}

// Peers who ask for large documents and do not read them cost the memory of a
// few, and /healthz answers meanwhile.
func TestSlowReadersTakeTurns(t *testing.T) {
	var made atomic.Int32
	large := strings.Repeat("x", 16<<20) // more than sockets hold
	addr := start(t, httpserve.Handler(httpserve.Config{
		Metrics: prometheus.NewRegistry(),
		Ready:   func() error { return nil },
		Status:  func() any { made.Add(1); return large },
		Page: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			made.Add(1)
			_, _ = io.WriteString(w, large) // the peer closes
		}),
	}), "")
	var peers []net.Conn
	for i := range 8 {
		peers = append(peers, ask(t, addr, []string{"/status.json", "/"}[i%2]))
	}
	wantMade := func(n int32) {
		t.Helper()
		testpeer.WaitFor(t, "documents to be made", func() (bool, string) { return made.Load() >= n, "" })
	}
	wantMade(4)
	for range 20 {
		if code, _ := do(t, "GET", "http://"+addr+"/healthz", nil); code != 200 {
			t.Errorf("/healthz: %d", code)
		}
	}
	if n := made.Load(); n != 4 {
		t.Errorf("%d documents at once, want 4", n)
	}
	for _, peer := range peers {
		if err := peer.Close(); err != nil {
			t.Error(err)
		}
	}
	// Those who waited have left, and nobody holds a turn any more.
	resp := ask(t, addr, "/status.json")
	if _, err := resp.Read(make([]byte, 1)); err != nil {
		t.Errorf("a document after all others: %v", err)
	}
	if err := resp.Close(); err != nil {
		t.Error(err)
	}
}
