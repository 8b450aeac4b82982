package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// servedBy is the response header that names the server that answered.
	servedBy = "X-Served-By"
	// thinking is how long a web server takes for an answer: long enough that
	// running sessions can be seen in the view, short enough not to matter.
	thinking = 60 * time.Millisecond
)

// webServer is one of the small web servers behind HAProxy.
type webServer struct {
	server
	listener net.Listener
}

// listenWeb opens a port on the loopback device for each server.
func listenWeb(servers []server) ([]webServer, error) {
	webs := make([]webServer, 0, len(servers))
	for _, s := range servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			closeWeb(webs)
			return nil, fmt.Errorf("web server %s: %w", s.key(), err)
		}
		webs = append(webs, webServer{server: s, listener: l})
	}
	return webs, nil
}

func closeWeb(webs []webServer) {
	for _, w := range webs {
		_ = w.listener.Close()
	}
}

// serveWeb answers every request with the row key of the server that got it,
// until ctx ends. It owns the listeners.
func serveWeb(ctx context.Context, webs []webServer) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range webs {
		srv := &http.Server{Handler: answer(w.key()), ReadHeaderTimeout: 5 * time.Second}
		group.Go(func() error {
			if err := srv.Serve(w.listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("web server %s: %w", w.key(), err)
			}
			return nil
		})
		group.Go(func() error {
			<-ctx.Done()
			return srv.Close()
		})
	}
	return group.Wait()
}

func answer(key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(thinking):
		case <-r.Context().Done():
			return
		}
		w.Header().Set(servedBy, key)
		_, _ = io.WriteString(w, key+"\n")
	})
}
