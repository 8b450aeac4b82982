package kubernetes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// A traffic asks pods without a pause, as clients behind a Service do: it knows
// only those that are ready and not ending, and that a few seconds late.
type traffic struct {
	endpoints atomic.Pointer[[]string]
	asked     atomic.Int64
	mu        sync.Mutex
	failed    []string
	stop      chan struct{}
	done      sync.WaitGroup
}

// endpointDelay is how long it takes until every node knows of a change.
const endpointDelay = 3 * time.Second

// startTraffic starts clients that keep their connections, and ones that do not.
func startTraffic(c *cluster, t *testing.T) *traffic {
	t.Helper()
	tr := &traffic{stop: make(chan struct{})}
	tr.endpoints.Store(new(c.readyAddresses(t)))
	tr.done.Go(func() { tr.follow(c) })
	for i := range 4 {
		client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: i%2 == 0, MaxIdleConnsPerHost: 1}}
		tr.done.Go(func() { tr.ask(client) })
	}
	return tr
}

//go:fix inline
func (tr *traffic) follow(c *cluster) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var pending [][]string // one for each tick
	for {
		select {
		case <-tr.stop:
			return
		case <-tick.C:
		}
		if now, err := c.addresses(); err == nil {
			pending = append(pending, now)
		}
		if len(pending) > int(endpointDelay/(200*time.Millisecond)) {
			tr.endpoints.Store(&pending[0])
			pending = pending[1:]
		}
	}
}

func (tr *traffic) ask(client *http.Client) {
	for n := 0; ; n++ {
		select {
		case <-tr.stop:
			return
		default:
		}
		endpoints := *tr.endpoints.Load()
		if err := get(client, endpoints[n%len(endpoints)]); err != nil {
			tr.mu.Lock()
			tr.failed = append(tr.failed, err.Error())
			tr.mu.Unlock()
		}
		tr.asked.Add(1)
	}
}

func get(client *http.Client, address string) error {
	// A POST: Go would repeat a GET whose connection was closed.
	resp, err := client.Post("http://"+net.JoinHostPort(address, "8080"), "text/plain", strings.NewReader("x"))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// end stops the clients and reports what failed.
func (tr *traffic) end(t *testing.T) {
	t.Helper()
	close(tr.stop)
	tr.done.Wait()
	t.Logf("%d requests, %d failed", tr.asked.Load(), len(tr.failed))
	if len(tr.failed) > 0 {
		t.Errorf("failed: %s", strings.Join(tr.failed[:min(10, len(tr.failed))], "\n"))
	}
}

// addresses returns what an EndpointSlice of the Service would list.
func (c *cluster) addresses() ([]string, error) {
	body, err := c.request("GET", pods+"?labelSelector=app.kubernetes.io/name=hadrain-haproxy", "", nil)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []pod }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	var addresses []string
	for _, p := range list.Items {
		if p.ready() && p.Metadata.DeletionTimestamp == "" {
			addresses = append(addresses, p.Status.PodIP)
		}
	}
	if len(addresses) == 0 {
		return nil, errors.New("no pod is ready")
	}
	return addresses, nil
}

func (c *cluster) readyAddresses(t *testing.T) []string {
	t.Helper()
	addresses, err := c.addresses()
	if err != nil {
		t.Fatal(err)
	}
	return addresses
}

// rollingUpdate replaces pods a and b as the Deployment says, one more at first
// and none less, while clients ask.
func (s *story) rollingUpdate(t *testing.T) {
	s.awaitGone(t, "plain")
	seconds, _ := s.deployment.in("spec", "minReadySeconds").(float64)
	tr := startTraffic(s.cluster, t)
	for _, old := range []string{"a", "b"} {
		name := "new-" + old
		s.run(t, name, s.deployment)
		s.awaitReady(t, name)
		during(t, time.Duration(seconds)*time.Second, func() (bool, string) {
			p, _ := s.look(t, name)
			return p.ready(), p.String()
		})
		s.delete(t, old)
		s.endsInOrder(t, old)
	}
	tr.end(t)
}

// endsInOrder: HAProxy ends first, while both sidecars still run.
func (s *story) endsInOrder(t *testing.T, name string) {
	t.Helper()
	start := time.Now()
	s.await(t, name, "to have ended HAProxy", func(p pod) bool {
		ended := p.container("haproxy").State["terminated"] != nil || p.Metadata.Name == ""
		if !ended && (p.container("responder").State["terminated"] != nil || p.container("render").State["terminated"] != nil) {
			t.Fatalf("a sidecar ended before HAProxy: %v", p)
		}
		return ended
	})
	s.awaitGone(t, name)
	t.Logf("%s ended within %v", name, time.Since(start).Round(time.Second))
}

// awaitToken waits until the kubelet has brought the token into all pods.
func (s *story) awaitToken(t *testing.T, want string) {
	t.Helper()
	testpeer.WaitFor(t, "the new token in the pods", func() (bool, string) {
		files := glob(t, s.dir+"/*/kubelet/pods/*/volumes/kubernetes.io~secret/token/token")
		for _, file := range files {
			if data, err := os.ReadFile(file); err != nil || string(data) != want {
				return false, fmt.Sprint(file, err)
			}
		}
		return len(files) > 0, "no volume"
	})
}
