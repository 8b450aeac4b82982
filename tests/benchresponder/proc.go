package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

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

// memoryOf returns VmRSS and RssAnon in MB.
func memoryOf(pid int) (rss, anon float64) {
	for line := range strings.Lines(read(fmt.Sprintf("/proc/%d/status", pid))) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			rss = number(firstField(value)) / 1024
		case "RssAnon":
			anon = number(firstField(value)) / 1024
		}
	}
	return rss, anon
}

// timeWaits counts connections of a local port of a process in TIME_WAIT, state 06.
func timeWaits(pid, port int) float64 {
	n, local := 0, fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(read(fmt.Sprintf("/proc/%d/net/tcp", pid))) {
		if f := strings.Fields(line); len(f) > 3 && f[3] == "06" && strings.HasSuffix(f[1], local) {
			n++
		}
	}
	return float64(n)
}

// listenOverflows counts connections that found a full queue, where a process
// listens: pairs of lines, names above values.
func listenOverflows(pid int) float64 {
	var names []string
	for line := range strings.Lines(read(fmt.Sprintf("/proc/%d/net/netstat", pid))) {
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
