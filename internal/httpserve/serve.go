package httpserve

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
)

const (
	// A profile of 30 s, the default of go tool pprof, must fit.
	writeTimeout = 40 * time.Second
	readTimeout  = 5 * time.Second
	idleTimeout  = 2 * time.Minute
	// stopTimeout is how long requests in flight may take to finish.
	stopTimeout = time.Second
	maxHeader   = 16 << 10
)

// Check returns an error if the web configuration file is not usable. An empty
// name, no file, is fine.
func Check(webConfigFile string) error {
	if info, err := os.Stat(webConfigFile); err == nil && !info.Mode().IsRegular() {
		// It is read for each connection, and a pipe would hold all of them.
		return fmt.Errorf("reading the web configuration %s: not a regular file (%s)", webConfigFile, info.Mode().Type())
	}
	if err := web.Validate(webConfigFile); err != nil {
		return fmt.Errorf("reading the web configuration %s: %w", webConfigFile, err)
	}
	return nil
}

// Serve answers HTTP on l until ctx ends, then lets requests in flight finish,
// for at most a second, and returns nil. It closes l. webConfigFile is a
// Prometheus web configuration file; if empty, there is neither TLS nor
// authentication.
func Serve(ctx context.Context, l net.Listener, h http.Handler, webConfigFile string, log *slog.Logger) error {
	peers := crowd{open: map[net.Conn]*list.Element{}}
	server := &http.Server{
		ConnState:         peers.note,
		Handler:           h,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// What goes wrong with one peer, a scanner or a broken TLS handshake,
		// is no change of state.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() {
		served <- web.Serve(l, server, &web.FlagConfig{WebConfigFile: &webConfigFile}, quiet(log))
	}()
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serving HTTP on %s: %w", l.Addr(), err), server.Close())
	case <-ctx.Done():
		return errors.Join(stop(server), ended(<-served))
	}
}

// quiet drops what the library says about each start.
func quiet(log *slog.Logger) *slog.Logger {
	return slog.New(levelHandler{log.Handler(), slog.LevelWarn})
}

type levelHandler struct {
	slog.Handler
	least slog.Level
}

// Enabled reports whether the level is at least the handler's own.
func (h levelHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.least && h.Handler.Enabled(ctx, level)
}

func stop(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}

func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
