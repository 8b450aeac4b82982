package kubernetes_test

import (
	"encoding/csv"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"hadrain/internal/testpeer"
)

// backends are two servers on the node, and how often each was asked.
type backends struct {
	address [2]string
	asked   [2]atomic.Int64
}

func newBackends(t *testing.T, n network) *backends {
	t.Helper()
	b := &backends{}
	for i := range b.address {
		l, err := net.Listen("tcp", net.JoinHostPort(n.address, "0"))
		if err != nil {
			t.Fatal(err)
		}
		server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			b.asked[i].Add(1) // HAProxy's own checks only connect
			_, _ = fmt.Fprintf(w, "web-0%d\n", i+1)
		})}}
		server.Start()
		t.Cleanup(server.Close)
		b.address[i] = l.Addr().String()
	}
	return b
}

// config returns our haproxy.cfg with these servers in place of the example's,
// and web-03, where nobody listens.
func (b *backends) config(t *testing.T) string {
	t.Helper()
	text := replaced(t, "base/haproxy.cfg", "192.0.2.1:8080", b.address[0], "192.0.2.2:8080", b.address[1])
	return text + `    server web-03 127.0.0.1:1 agent-send "web/web-03\n"` + "\n"
}

// status returns the column "status" of a server of the backend web, as
// HAProxy in the pod shows it.
func status(p pod, server string) (string, error) {
	resp, err := http.Get("http://" + net.JoinHostPort(p.Status.PodIP, "8404") + "/stats;csv")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	rows, err := csv.NewReader(resp.Body).ReadAll()
	if err != nil {
		return "", err
	}
	for _, row := range rows {
		if row[0] == "web" && row[1] == server {
			return row[17], nil
		}
	}
	return "", fmt.Errorf("no server %s", server)
}

// awaitStatus waits until HAProxy shows the status.
func awaitStatus(t *testing.T, p pod, server, want string) {
	t.Helper()
	testpeer.WaitFor(t, server+" in "+p.Metadata.Name+" to be "+want, func() (bool, string) {
		got, err := status(p, server)
		return got == want, fmt.Sprintf("%q, %v", got, err)
	})
}

func mustStatus(t *testing.T, p pod, server string) string {
	t.Helper()
	got, err := status(p, server)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
