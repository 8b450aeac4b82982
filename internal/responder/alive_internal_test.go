package responder

import (
	"log/slog"
	"net"
	"testing"
	"time"
)

// TestAlive: a loop that does not turn is seen, but not before it had the time.
func TestAlive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := newResponder(Config{State: t.TempDir() + "/state", Agent: []net.Listener{l}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	// Nobody serves: its loops stand still.
	last := r.agent.Beat()
	if err := r.alive(last.Add(stuck - time.Second)); err != nil {
		t.Errorf("too early: %v", err)
	}
	if err := r.alive(last.Add(stuck)); err == nil {
		t.Error("a loop that does not turn is alive")
	}
}
