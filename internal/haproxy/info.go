package haproxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Info is what "show info" tells about the worker that answered.
type Info struct {
	Version  string        // such as "2.6.12-1+deb12u4"
	PID      int           // of the worker: a new one after each reload
	Uptime   time.Duration // of the worker, whole seconds
	Stopping bool          // an old worker that only finishes its sessions
	Node     string        // the host's name, or "node" of haproxy.cfg
}

// ReadInfo asks the runtime socket at addr for "show info".
func ReadInfo(ctx context.Context, addr string) (Info, error) {
	const cmd = "show info"
	text, err := Command(ctx, addr, cmd)
	if err != nil {
		return Info{}, err
	}
	info, err := ParseInfo(text)
	if err != nil {
		return Info{}, fmt.Errorf("haproxy socket %s: %q: %w", addr, cmd, err)
	}
	return info, nil
}

// ParseInfo reads the answer to "show info", one "Name: value" a line. Version
// and Pid are needed; unknown names are ignored.
func ParseInfo(text string) (Info, error) {
	values := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			values[name] = strings.TrimSpace(value)
		}
	}
	var missing []string
	for _, name := range []string{"Version", "Pid"} {
		if values[name] == "" {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return Info{}, fmt.Errorf("missing lines %s", strings.Join(missing, ", "))
	}
	pid, err := strconv.Atoi(values["Pid"])
	if err != nil || pid <= 0 {
		return Info{}, errors.Join(fmt.Errorf("line Pid: %q: want a process number", values["Pid"]), err)
	}
	uptime, _ := strconv.Atoi(values["Uptime_sec"]) // cosmetic: zero when absent
	return Info{
		Version:  values["Version"],
		PID:      pid,
		Uptime:   time.Duration(uptime) * time.Second,
		Stopping: values["Stopping"] == "1",
		Node:     values["node"],
	}, nil
}
