package agentcheck

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hadrain/internal/desired"
)

const (
	// silentTimeout is how long a peer may take for its whole question.
	silentTimeout = time.Second
	// newlineTimeout is how long a line may stay without its end after its last
	// byte. HAProxy sends a line in one piece; its command line cannot send a
	// newline at all ("set server b/s agent-send").
	newlineTimeout = 100 * time.Millisecond
	// closeTimeout is how long an answered peer may take to close.
	closeTimeout = 500 * time.Millisecond
	// sweepInterval is how often answered connections are looked through.
	sweepInterval = 20 * time.Millisecond
	// beatInterval is how often an idle loop turns.
	beatInterval = time.Second
	// exhaustedPause is how long a loop waits for a descriptor to be freed.
	exhaustedPause = 50 * time.Millisecond
	// maxBacklog bounds what is still accepted while stopping: the kernel's own
	// bound of a queue (net.core.somaxconn).
	maxBacklog = 4096
)

// DefaultMaxConnections is the limit where a [Config] has none: as many as wait
// in the kernel's queue (net.core.somaxconn). A machine that stalls for half a
// second under 5,000 checks a second opens 2,500, and at the limit a check whose
// question is still on its way would be taken for a silent peer.
const DefaultMaxConnections = maxBacklog

// Config says who answers. Its functions are called from several goroutines,
// and must not keep the line.
type Config struct {
	// Answer returns what a line, without its end, gets. It must not block.
	Answer func(line []byte) Answer
	// Answered is called after each reply that was written: at is when, took the
	// time since the connection was accepted. The line is nil if it had no end.
	// If nil, nobody is told.
	Answered func(line []byte, a Answer, at time.Time, took time.Duration)
	// MaxConnections is how many connections are open at once. At the limit the
	// oldest without a complete question makes room for a new one. If zero,
	// DefaultMaxConnections.
	MaxConnections int
	// Log is told when descriptors run out, and when there are some again. If nil,
	// nobody is.
	Log *slog.Logger
}

// A Server answers agent checks. See [New].
type Server struct {
	cfg   Config
	limit int64

	open     atomic.Int64 // connections
	accepted atomic.Uint64
	lost     [lostReasons]atomic.Uint64
	loops    []*loop

	peers peers
	wg    sync.WaitGroup // goroutines of slow peers
}

// New returns a server of the given listeners, TCP or unix, which it takes over
// unless it returns an error.
func New(cfg Config, listeners ...net.Listener) (*Server, error) {
	if cfg.MaxConnections <= 0 {
		cfg.MaxConnections = DefaultMaxConnections
	}
	if cfg.Answered == nil {
		cfg.Answered = func([]byte, Answer, time.Time, time.Duration) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, limit: int64(cfg.MaxConnections)}
	for _, l := range listeners {
		loop, err := newLoop(s, l)
		if err != nil {
			for _, made := range s.loops {
				err = errors.Join(err, made.file.Close())
			}
			return nil, err
		}
		s.loops = append(s.loops, loop)
	}
	return s, nil
}

// Serve answers until ctx ends. Then it answers who is waiting already, closes
// the listeners, lets questions in flight finish, and returns nil. An error
// means that a listener broke; the others are stopped as well. It is called
// once.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(s.loops))
	var loops sync.WaitGroup
	for i, l := range s.loops {
		loops.Go(func() {
			errs[i] = l.run(ctx)
			cancel()
		})
	}
	loops.Wait()
	s.wg.Wait()
	return errors.Join(errs...)
}

// Beat returns when the loop that is furthest behind turned last. While the
// server works it is never more than a few seconds ago, also without any check.
func (s *Server) Beat() time.Time {
	oldest := time.Now()
	for _, l := range s.loops {
		if at := time.Unix(0, l.beat.Load()); at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// reply sends an answer. It reports false if the peer is gone.
func (s *Server) reply(fd int, line []byte, a Answer, since time.Time) bool {
	if !write(fd, a.Reply) {
		s.lose(LostReply)
		return false
	}
	now := time.Now()
	s.cfg.Answered(line, a, now, now.Sub(since))
	return true
}

var (
	noNewline = Answer{Reply: desired.ReplyNoNewline, Kind: NoNewline, Key: -1}
	refused   = Answer{Reply: ReplyRefused, Kind: Refused, Key: -1}
)
