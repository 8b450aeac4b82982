package tests_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hadrain/internal/testpeer"
)

// An nginxStack is an nginx that follows Hadrain: Consul, a render of its own
// without a state file, three web servers and clients that never pause.
type nginxStack struct {
	*stack
	t        *testing.T
	upstream string                   // the file that render makes
	metrics  string                   // address of render's
	names    []string                 // of the web servers
	served   map[string]*atomic.Int64 // requests by web server
	failed   atomic.Int64
	failure  atomic.Value // string: the last one
	hold     chan struct{}
	held     chan struct{}
	client   *http.Client
}

func newNginxStack(t *testing.T) *nginxStack {
	n := &nginxStack{
		t: t, stack: newRenderStack(t, testpeer.ConsulConfig{}), names: []string{"web-01", "web-02", "canary"},
		served: map[string]*atomic.Int64{}, hold: make(chan struct{}), held: make(chan struct{}, 1),
	}
	n.upstream = filepath.Join(n.dir, "conf", "upstream.conf")
	if err := os.Mkdir(filepath.Dir(n.upstream), 0o755); err != nil {
		t.Fatal(err)
	}
	n.mark()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(n.dir, "http.sock"))
	}
	n.client = &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return n
}

// serve starts a web server and returns its line in the template's list.
func (n *nginxStack) serve(name, keys string) string {
	n.t.Helper()
	l := listen(n.t)
	count := new(atomic.Int64)
	n.served[name] = count
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			n.held <- struct{}{}
			<-n.hold
		}
		count.Add(1)
		_, _ = io.WriteString(w, name) // a client that left is counted by the client
	})}
	go func() { _ = server.Serve(l) }() // ends with Close
	n.t.Cleanup(func() { _ = server.Close() })
	return fmt.Sprintf("100 %s max_fails=0 # %s\n", l.Addr(), keys)
}

var serverList = regexp.MustCompile(`(?s)(\{\{ define "servers" \}\}\n).*?(\{\{ end -\}\})`)

// template is what an operator makes of the one that is shipped.
func (n *nginxStack) template() string {
	n.t.Helper()
	shipped, err := os.ReadFile(filepath.Join(testpeer.Root(n.t), "templates", "nginx-upstream.tmpl"))
	if err != nil {
		n.t.Fatal(err)
	}
	list := n.serve("web-01", "web/web-01") + n.serve("web-02", "web/web-02") + n.serve("canary", "web/gke-cny-web canary")
	path := filepath.Join(n.dir, "upstream.tmpl")
	write(n.t, path, serverList.ReplaceAllString(string(shipped), "${1}"+list+"${2}"))
	return path
}

// start starts render, and then nginx with the file that render has made.
func (n *nginxStack) start() (render, nginx *testpeer.Process) {
	n.t.Helper()
	binary := testpeer.Need(n.t, "nginx")
	config := filepath.Join(n.dir, "nginx.conf")
	write(n.t, config, n.nginxConfig())
	call := fmt.Sprintf("%s -p %s -c %s -e stderr", binary, n.dir, config)
	command := fmt.Sprintf("%[1]s -t && { test ! -s %[2]s/nginx.pid || %[1]s -s reload; }", call, n.dir)
	n.metrics = unused(n.t)
	render = n.run(nil, "--state", "", "--template", n.template()+":"+n.upstream+":"+command, "--http.listen", n.metrics)
	n.wantLine(render, "server .*;")
	nginx = testpeer.Start(n.t, exec.Command("/bin/sh", "-c", "exec "+call))
	testpeer.WaitFor(n.t, "nginx to answer", func() (bool, string) {
		name, err := n.get("/")
		return err == nil, fmt.Sprintf("%s %v\n%s", name, err, nginx.Output())
	})
	return render, nginx
}

func (n *nginxStack) nginxConfig() string {
	text := `user root; daemon off; worker_processes 2; pid DIR/nginx.pid; error_log stderr warn;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path DIR/t1; proxy_temp_path DIR/t2; fastcgi_temp_path DIR/t3; uwsgi_temp_path DIR/t4; scgi_temp_path DIR/t5;
  include DIR/conf/*; # not what render keeps beside the upstream: its names begin with a dot
  server {
    listen unix:DIR/http.sock;
    location / { proxy_pass http://web; proxy_next_upstream off; }
  }
}
`
	return strings.ReplaceAll(text, "DIR", n.dir)
}

func (n *nginxStack) get(path string) (server string, err error) {
	resp, err := n.client.Get("http://nginx" + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	return string(body), err
}

// traffic sends requests, several at a time, until the test ends.
func (n *nginxStack) traffic() {
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := n.get("/"); err != nil {
					n.failed.Add(1)
					n.failure.Store(err.Error())
				}
			}
		})
	}
	n.t.Cleanup(func() { close(stop); clients.Wait() })
}

// wantServers waits until exactly these web servers get requests: 60 requests
// in a row reach nobody else, and each of them.
func (n *nginxStack) wantServers(p *testpeer.Process, want ...string) {
	n.t.Helper()
	start := n.counts()
	testpeer.WaitFor(n.t, "requests to reach only "+strings.Join(want, " and "), func() (bool, string) {
		now := n.counts()
		total, got := int64(0), []string(nil)
		for _, name := range n.names {
			if delta := now[name] - start[name]; delta > 0 {
				got = append(got, name)
				total += delta
			}
		}
		if total < 60 {
			return false, fmt.Sprintf("only %d requests", total)
		}
		start = now
		return strings.Join(got, " ") == strings.Join(want, " "), fmt.Sprintf("%q\n%s", got, p.Output())
	})
}

func (n *nginxStack) counts() map[string]int64 {
	counts := map[string]int64{}
	for name, count := range n.served {
		counts[name] = count.Load()
	}
	return counts
}

// wantLine waits until a line of the upstream is as pattern says.
func (n *nginxStack) wantLine(p *testpeer.Process, pattern string) {
	n.t.Helper()
	line := regexp.MustCompile(`(?m)^ +` + pattern + `.*$`)
	testpeer.WaitFor(n.t, "a line "+pattern, func() (bool, string) {
		data, _ := os.ReadFile(n.upstream)
		return line.Match(data), string(data) + p.Output()
	})
}

// templateMetric returns a metric of the template, such as "stale".
func (n *nginxStack) templateMetric(name string) float64 {
	n.t.Helper()
	labels := fmt.Sprintf("{destination=%q,template=%q}", n.upstream, filepath.Join(n.dir, "upstream.tmpl"))
	return metric(n.t, n.metrics, "hadrain_render_template_"+name+labels)
}
