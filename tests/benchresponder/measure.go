package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hadrain/internal/statefile"
)

// A sample is one measurement. Times are in microseconds.
type sample struct {
	Done       float64 `json:"done"` // checks
	Seconds    float64 `json:"seconds"`
	P50        float64 `json:"p50"`
	P99        float64 `json:"p99"`
	P999       float64 `json:"p999"`
	Max        float64 `json:"max"`
	Errors     float64 `json:"errors"`
	Timeouts   float64 `json:"timeouts"`
	Skipped    float64 `json:"skipped"`     // not asked, for want of connections
	PeerClosed float64 `json:"peer_closed"` // checks after which the server closed first

	CPU       float64 `json:"-"` // a check, of the server and its children
	RSS, Anon float64 `json:"-"` // MB, the most that was seen
	TimeWait  float64 `json:"-"` // connections left by the run
	Overflows float64 `json:"-"` // of listen queues
}

// failed is how many checks got no reply, or could not be started.
func (s sample) failed() float64 { return s.Errors + s.Timeouts + s.Skipped }

// why says more about failed.
func (s sample) why() string {
	return fmt.Sprintf("%.0f errors, %.0f timeouts, %.0f not started; the slowest %.0f ms, %.0f overflows", s.Errors, s.Timeouts, s.Skipped, s.Max/1000, s.Overflows)
}

// A server is a variant that runs.
type server struct {
	variant
	pid        int
	enter      []string // what runs a program where it can be reached
	port, http int
	stop       func() error
}

// measure runs one variant under one load. Something else may be done to it
// during the measurement.
func (b *bench) measure(ctx context.Context, v variant, l load, seconds float64, during func(*server) error) (s sample, err error) {
	srv, err := b.start(ctx, v)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, srv.stop()) }()
	if v.reload != "" {
		done := b.keepReloading(ctx, srv)
		defer func() { err = errors.Join(err, done()) }()
	}
	return b.load(ctx, srv, l, seconds, during)
}

func (b *bench) start(ctx context.Context, v variant) (*server, error) {
	if v.name == units {
		return b.systemd.start(v)
	}
	srv := &server{variant: v}
	var err1, err2 error
	srv.port, err1 = freePort()
	srv.http, err2 = freePort()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	ports := strings.NewReplacer("PORT", strconv.Itoa(srv.port), "HTTP", strconv.Itoa(srv.http))
	var argv []string
	for _, arg := range v.argv {
		argv = append(argv, ports.Replace(arg))
	}
	var said strings.Builder
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	srv.pid = cmd.Process.Pid
	srv.stop = func() error {
		// It ends by being killed, so its status says nothing.
		err := syscall.Kill(-srv.pid, syscall.SIGKILL)
		_ = cmd.Wait()
		return err
	}
	if err := awaitListener(ctx, srv.port); err != nil {
		return nil, errors.Join(err, srv.stop(), errors.New(said.String()))
	}
	return srv, nil
}

// load runs the load generator and looks at the server when the warm-up is
// over, now and then, and at the end.
func (b *bench) load(ctx context.Context, srv *server, l load, seconds float64, during func(*server) error) (s sample, err error) {
	argv := append(slices.Clone(srv.enter), b.path("load"), strconv.Itoa(srv.port), strconv.Itoa(l.rate), strconv.Itoa(l.flight),
		"0.3", fmt.Sprint(seconds), strconv.Itoa(asked))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	lines := bufio.NewScanner(pipe)
	lines.Scan() // "recording"
	pid := srv.pid
	cpu, overflows, peak := cpuOf(pid), listenOverflows(pid), watchMemory(pid)
	if during != nil {
		err = during(srv)
	}
	lines.Scan()
	cpu, overflows = cpuOf(pid)-cpu, listenOverflows(pid)-overflows
	s.RSS, s.Anon = peak()
	if e := json.Unmarshal(lines.Bytes(), &s); e != nil {
		err = errors.Join(err, fmt.Errorf("reading what the load generator printed: %w", e))
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return s, err
	}
	s.CPU = float64(cpu.Microseconds()) / max(s.Done, 1)
	s.Overflows, s.TimeWait = overflows, timeWaits(pid, srv.port)
	return s, nil
}

// every calls f at each tick, until done is called or f fails.
func every(d time.Duration, f func() error) (done func() error) {
	end, result := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-end:
				result <- nil
				return
			case <-tick.C:
				if err := f(); err != nil {
					result <- err
					return
				}
			}
		}
	}()
	return func() error { close(end); return <-result }
}

// watchMemory returns a function that returns the most that the process had.
func watchMemory(pid int) (peak func() (rss, anon float64)) {
	rss, anon := memoryOf(pid)
	look := func() error {
		r, a := memoryOf(pid)
		rss, anon = max(rss, r), max(anon, a)
		return nil
	}
	done := every(200*time.Millisecond, look)
	return func() (float64, float64) {
		_ = done() // look does not fail
		_ = look()
		return rss, anon
	}
}

// scrapeEvery is after how many replaced files the metrics are read: three times
// as often as Prometheus does usually.
const scrapeEvery = 5

// keepReloading replaces the server's file every second, and reads its metrics.
func (b *bench) keepReloading(ctx context.Context, srv *server) (done func() error) {
	// Made beforehand: only the replacing is to disturb.
	files := [][]byte{stateOf(sizes[srv.reload], 2), stateOf(sizes[srv.reload], 3)}
	n := 0
	return every(time.Second, func() error {
		n++
		if err := statefile.Write(b.path(srv.reload), files[n%len(files)]); err != nil {
			return err
		}
		if n%scrapeEvery != 0 {
			return nil
		}
		return scrape(ctx, srv.http)
	})
}

func scrape(ctx context.Context, port int) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", port), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// freePort returns a port that nobody listens on now.
func freePort() (int, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, os.ErrInvalid
	}
	return addr.Port, l.Close()
}

func awaitListener(ctx context.Context, port int) error {
	return await(ctx, func() error {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			err = c.Close()
		}
		return err
	})
}
