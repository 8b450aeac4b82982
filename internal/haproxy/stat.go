package haproxy

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// StatKind tells what a row of "show stat" is about (column "type").
type StatKind uint8

// The values of [StatKind].
const (
	StatFrontend StatKind = iota
	StatBackend
	StatServer
	StatListener
)

// Stat is one row of "show stat" of the current worker.
type Stat struct {
	Proxy string // pxname
	Name  string // svname: a server's name, or FRONTEND, BACKEND
	Kind  StatKind

	Status   string // as shown: UP, "UP 1/3", DOWN, "DRAIN (agent)", "MAINT (via b/s)", "no check", OPEN, ...
	Weight   int    // effective, 0 to 256, for a backend the sum; reduced while slowstart ramps up
	Throttle int    // percent of the weight that slowstart allows; 100 when it is not running

	Sessions      int           // scur: open now
	SessionsTotal int           // stot: since the worker started
	Rate          int           // sessions a second, over the last second
	Since         time.Duration // lastchg: since the last change of status, whole seconds

	// The agent check. All are zero when the server has none or it is
	// disabled, and AgentHealth is -1 then.
	AgentStatus   string // CHECKED, L7OK, L7STS, L4CON, L4TOUT, L7TOUT, ...; without the "* " of a running check
	AgentRunning  bool   // a check is under way: LastAgent is empty for that reason alone
	LastAgent     string // last_agt: the reason, such as "Connection refused" or "agent reports an error : hold"
	AgentDesc     string // agent_desc: AgentStatus in words
	AgentDuration time.Duration
	AgentHealth   int // 0 means that only a reply with "up" revives the server
}

// Key returns backend/server, the row key of a server.
func (s Stat) Key() string { return s.Proxy + "/" + s.Name }

// State returns the first word of Status, which does not change with the
// counters and reasons behind it: UP, DOWN, DRAIN, MAINT, NOLB, OPEN, STOP or
// "no" for "no check".
func (s Stat) State() string {
	word, _, _ := strings.Cut(s.Status, " ")
	return word
}

// statColumns are the columns without which a row would be misread. The agent's
// are not among them: HAProxy 1.6 and some of 2.4 (issue 1331) leave them out.
var statColumns = []string{"pxname", "svname", "status", "weight", "scur", "stot", "rate", "type"}

// Stats asks the runtime socket at addr for all rows of "show stat".
func Stats(ctx context.Context, addr string) ([]Stat, error) {
	const cmd = "show stat"
	text, err := Command(ctx, addr, cmd)
	if err != nil {
		return nil, err
	}
	rows, err := ParseStat(text)
	if err != nil {
		return nil, fmt.Errorf("haproxy socket %s: %q: %w", addr, cmd, err)
	}
	return rows, nil
}

// ParseStat reads the answer to "show stat", CSV with one line of names that
// starts with "# " (management guide, section 9.1). The stats page's ";csv"
// export is the same text.
func ParseStat(text string) ([]Stat, error) {
	body, ok := strings.CutPrefix(text, "# ")
	if !ok {
		first, _, _ := strings.Cut(text, "\n")
		return nil, fmt.Errorf("first line %.40q: want the names of the columns after #", first)
	}
	r := csv.NewReader(strings.NewReader(body))
	r.FieldsPerRecord = -1
	names, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("names of the columns: %w", err)
	}
	h, err := newHeader(names, statColumns)
	if err != nil {
		return nil, err
	}
	var rows []Stat
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		s, err := stat(row{header: h, fields: fields})
		if err != nil {
			line, _ := r.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		rows = append(rows, s)
	}
}

func stat(r row) (Stat, error) {
	for _, name := range statColumns {
		if r.header[name] >= len(r.fields) {
			return Stat{}, fmt.Errorf("ends before column %s", name)
		}
	}
	status, running := strings.CutPrefix(r.text("agent_status"), "* ")
	s := Stat{
		Proxy:         r.text("pxname"),
		Name:          r.text("svname"),
		Kind:          StatKind(min(r.bits("type"), 255)),
		Status:        r.text("status"),
		Weight:        r.number("weight", 0),
		Throttle:      r.number("throttle", 100),
		Sessions:      r.number("scur", 0),
		SessionsTotal: r.number("stot", 0),
		Rate:          r.number("rate", 0),
		Since:         time.Duration(r.number("lastchg", 0)) * time.Second,
		AgentStatus:   status,
		AgentRunning:  running,
		LastAgent:     r.text("last_agt"),
		AgentDesc:     r.text("agent_desc"),
		AgentDuration: time.Duration(r.number("agent_duration", 0)) * time.Millisecond,
		AgentHealth:   r.number("agent_health", -1),
	}
	return s, r.err
}
