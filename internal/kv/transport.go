package kv

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// newTransport returns a transport to the address in each request, or to the unix
// socket if there is one.
func newTransport(secure *tls.Config, socket string) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	dial := dialer.DialContext
	if socket != "" {
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		}
	}
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     secure,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     30 * time.Second,
		// Most agents are on this machine: packing costs more than it saves.
		DisableCompression: true,
	}
}

// requests is what every request to Consul and its answer pass through.
type requests struct {
	next     atomic.Pointer[http.Transport]
	token    func() (string, error)
	maxBytes int64
}

var errClosed = errors.New("the connection was closed without an answer")

// RoundTrip implements [http.RoundTripper].
func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := r.token()
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // it was never sent
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("X-Consul-Token", token)
	resp, err := r.next.Load().RoundTrip(req)
	if errors.Is(err, io.EOF) {
		return nil, errClosed // it is not an answer that was cut short
	}
	if err != nil {
		return nil, err
	}
	if r.maxBytes > 0 {
		resp.Body = &boundedBody{resp.Body, r.maxBytes}
	}
	if err := divert(req, resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// CloseIdleConnections is called by the client's method of the same name.
func (r *requests) CloseIdleConnections() { r.next.Load().CloseIdleConnections() }
