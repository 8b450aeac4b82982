package haproxy

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// ServerState is one row of "show servers state": what HAProxy holds about a
// server. It comes from one worker; after a reload old workers answer with
// their own, frozen one.
type ServerState struct {
	Backend string // be_name
	Server  string // srv_name
	Addr    string // srv_addr, without the port
	Port    int    // srv_port; 0 for a Unix socket

	Op            Op
	Admin         Admin
	Weight        int           // srv_uweight, 0 to 256: what is in effect, before slowstart
	InitialWeight int           // srv_iweight, 0 to 256: from the configuration
	Since         time.Duration // since the last change of Op, in whole seconds

	Agent     AgentState
	AgentAddr string // "" when the version does not print it (before 2.4) or there is none
	AgentPort int    // 0 likewise
}

// Key returns backend/server, the row key of the server.
func (s ServerState) Key() string { return s.Backend + "/" + s.Server }

// Percent returns Weight as whole percent of InitialWeight, rounded down as
// HAProxy does, and 0 when the initial weight is 0.
func (s ServerState) Percent() int {
	if s.InitialWeight == 0 {
		return 0
	}
	return s.Weight * 100 / s.InitialWeight
}

// serverColumns are the columns without which a row would be misread.
var serverColumns = []string{
	"be_name", "srv_name", "srv_op_state", "srv_admin_state",
	"srv_uweight", "srv_iweight", "srv_agent_state",
}

// ServersState asks the runtime socket at addr for the state of all servers.
func ServersState(ctx context.Context, addr string) ([]ServerState, error) {
	const cmd = "show servers state"
	text, err := Command(ctx, addr, cmd)
	if err != nil {
		return nil, err
	}
	rows, err := ParseServersState(text)
	if err != nil {
		return nil, fmt.Errorf("haproxy socket %s: %q: %w", addr, cmd, err)
	}
	return rows, nil
}

// ParseServersState reads the answer to "show servers state": the format's
// version (1 is the only one there is), a line of names that starts with "# ",
// then one line a server. HAProxy repeats nothing; order is that of the answer.
func ParseServersState(text string) ([]ServerState, error) {
	version, rest, _ := strings.Cut(text, "\n")
	if v := strings.TrimSpace(version); v != "1" {
		return nil, fmt.Errorf("first line %.40q: want format version 1", v)
	}
	names, rest, _ := strings.Cut(rest, "\n")
	names, ok := strings.CutPrefix(names, "#")
	if !ok {
		return nil, fmt.Errorf("second line %.40q: want the names of the columns after #", names)
	}
	h, err := newHeader(strings.Fields(names), serverColumns)
	if err != nil {
		return nil, err
	}
	var rows []ServerState
	line := 2
	for text := range strings.Lines(rest) {
		line++
		fields := strings.Fields(text)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		s, err := serverState(row{header: h, fields: fields})
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		rows = append(rows, s)
	}
	return rows, nil
}

func serverState(r row) (ServerState, error) {
	// A short row has lost fields in the middle: every later one would be
	// read under the wrong name.
	if len(r.fields) < len(r.header) {
		return ServerState{}, fmt.Errorf("%d fields for %d columns", len(r.fields), len(r.header))
	}
	s := ServerState{
		Backend:       r.text("be_name"),
		Server:        r.text("srv_name"),
		Addr:          r.word("srv_addr"),
		Port:          r.number("srv_port", 0),
		Op:            Op(min(r.bits("srv_op_state"), 255)),
		Admin:         Admin(r.bits("srv_admin_state")),
		Weight:        r.number("srv_uweight", 0),
		InitialWeight: r.number("srv_iweight", 0),
		Since:         time.Duration(r.number("srv_time_since_last_change", 0)) * time.Second,
		Agent:         AgentState(r.bits("srv_agent_state")),
		AgentAddr:     r.word("srv_agent_addr"),
		AgentPort:     r.number("srv_agent_port", 0),
	}
	return s, r.err
}
