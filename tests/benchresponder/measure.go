package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	RSS, Anon float64 // kB
	TimeWait  float64 // connections left by the run
	Overflows float64 // of listen queues, of the whole machine
}

// measure runs one variant under one load.
func (b *bench) measure(ctx context.Context, v variant, l load) (s sample, err error) {
	port, err := freePort()
	if err != nil {
		return s, err
	}
	argv := v.argv(port)
	server := exec.CommandContext(ctx, argv[0], argv[1:]...)
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	server.Cancel = func() error { return syscall.Kill(-server.Process.Pid, syscall.SIGKILL) }
	if err := server.Start(); err != nil {
		return s, err
	}
	defer func() {
		// It ends by being killed, so its status says nothing.
		_ = server.Cancel()
		_ = server.Wait()
	}()
	if err := awaitListener(ctx, port); err != nil {
		return s, err
	}
	if v.reload != "" {
		stop := b.keepWriting(v.reload)
		defer func() { err = errors.Join(err, stop()) }()
	}
	return b.load(ctx, server.Process.Pid, port, l)
}

// rows is how many different questions are asked: one load balancer asks for a
// part of the keys.
const rows = 1000

// load runs the load generator and looks at the server when the warm-up is
// over and at the end.
func (b *bench) load(ctx context.Context, pid, port int, l load) (s sample, err error) {
	cmd := exec.CommandContext(ctx, b.path("load"), strconv.Itoa(port), strconv.Itoa(l.rate), strconv.Itoa(l.flight),
		"0.5", fmt.Sprint(b.seconds), strconv.Itoa(rows))
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
	cpu, overflows := cpuOf(pid), listenOverflows()
	lines.Scan()
	cpu, overflows = cpuOf(pid)-cpu, listenOverflows()-overflows
	s.RSS, s.Anon = memoryOf(pid)
	err = json.Unmarshal(lines.Bytes(), &s)
	if e := cmd.Wait(); e != nil || err != nil {
		return s, errors.Join(e, err)
	}
	s.CPU = float64(cpu.Microseconds()) / max(s.Done, 1)
	s.Overflows, s.TimeWait = overflows, timeWaits(port)
	return s, nil
}

// keepWriting replaces a state file every second until it is stopped.
func (b *bench) keepWriting(name string) (stop func() error) {
	done, result := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for index := uint64(2); ; index++ {
			select {
			case <-done:
				result <- nil
				return
			case <-tick.C:
				if err := b.writeState(name, index); err != nil {
					result <- err
					return
				}
			}
		}
	}()
	return func() error { close(done); return <-result }
}

// freePort returns a port that nobody listens on now.
func freePort() (int, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

func awaitListener(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var dialer net.Dialer
	for {
		c, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the server to listen: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// cpuOf returns what the threads of a process and its reaped children have
// used: the former to the nanosecond (schedstat), the latter to the tick.
func cpuOf(pid int) time.Duration {
	var total time.Duration
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is good
	for _, task := range tasks {
		total += time.Duration(number(firstField(read(task))))
	}
	stat := read(fmt.Sprintf("/proc/%d/stat", pid))
	// After the name: state is field 3, cutime and cstime are 16 and 17 (proc(5)).
	if f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(f) > 14 {
		const tick = time.Second / 100 // USER_HZ
		total += time.Duration(number(f[13])+number(f[14])) * tick
	}
	return total
}

// memoryOf returns VmRSS and RssAnon in kB.
func memoryOf(pid int) (rss, anon float64) {
	for line := range strings.Lines(read(fmt.Sprintf("/proc/%d/status", pid))) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			rss = number(firstField(value))
		case "RssAnon":
			anon = number(firstField(value))
		}
	}
	return rss, anon
}

// timeWaits counts connections of a local port in TIME_WAIT, state 06.
func timeWaits(port int) float64 {
	n, local := 0, fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(read("/proc/net/tcp")) {
		if f := strings.Fields(line); len(f) > 3 && f[3] == "06" && strings.HasSuffix(f[1], local) {
			n++
		}
	}
	return float64(n)
}

func listenOverflows() float64 {
	var names []string
	for line := range strings.Lines(read("/proc/net/netstat")) {
		f := strings.Fields(line)
		for i, name := range names {
			if name == "ListenOverflows" && i < len(f) {
				return number(f[i])
			}
		}
		names = f
	}
	return 0
}

// read returns a file of /proc, empty if the process is gone.
func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

func firstField(s string) string {
	f, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return f
}

func number(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return n
}
