package httpserve

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// mostConnections is how many connections are open at once. A daemon keeps
	// descriptors for them.
	mostConnections = 32
	// mostDocuments is how many documents and pages are in memory at once: with
	// 100,000 keys each takes megabytes, for as long as the peer takes to read it.
	mostDocuments = 4
	// readerTimeout is how long a peer may take for one, so that others get theirs.
	readerTimeout = 10 * time.Second
)

// A crowd is the connections of a server. When there are too many, the oldest
// that waits for a request makes room, or the new one itself.
type crowd struct {
	mu      sync.Mutex
	open    map[net.Conn]*list.Element // nil while a request is answered
	waiting list.List                  // of net.Conn, oldest first
}

// note is the hook [http.Server.ConnState].
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place, known := c.open[conn]
	if place != nil {
		c.waiting.Remove(place)
	}
	switch {
	case state == http.StateNew, known && state == http.StateIdle:
		c.open[conn] = c.waiting.PushBack(conn)
	case known && state == http.StateActive:
		c.open[conn] = nil
	default: // closed, or made room before
		delete(c.open, conn)
	}
	if len(c.open) > mostConnections {
		c.evict()
	}
}

func (c *crowd) evict() {
	oldest, _ := c.waiting.Remove(c.waiting.Front()).(net.Conn)
	delete(c.open, oldest)
	if t, ok := oldest.(*tls.Conn); ok {
		oldest = t.NetConn() // no farewell, which could block
	}
	_ = oldest.Close() // the server notices, and tells nobody
}

// inTurn lets few requests at a time be answered; the others wait.
func inTurn(turns chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		patience := time.NewTimer(readerTimeout)
		defer patience.Stop()
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-r.Context().Done():
			return
		case <-patience.C:
			plain(w, http.StatusServiceUnavailable, "too many requests at once")
			return
		}
		// What cannot have a deadline does not block either.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(readerTimeout))
		next.ServeHTTP(w, r)
	})
}
