package haproxy

import (
	"fmt"
	"strings"
)

// Admin is srv_admin_state: why a server is kept out of rotation by decision,
// not by a health check (include/haproxy/server-t.h, enum srv_admin). Several
// bits can be set together; zero is a server that nobody took out.
//
// HAProxy does not record who set a bit: the agent, the runtime socket, Lua
// and the stats page all use FMAINT and FDRAIN.
type Admin uint32

// The bits of [Admin].
const (
	FMAINT Admin = 1 << iota // forced maintenance: agent, socket, stats page
	IMAINT                   // maintenance inherited from the tracked server
	CMAINT                   // "disabled" in the configuration; a note, not itself a maintenance
	FDRAIN                   // forced drain: agent, socket, stats page
	IDRAIN                   // drain inherited from the tracked server
	RMAINT                   // maintenance because the name does not resolve
	HMAINT                   // the server's FQDN was changed at run time; a note
)

// maskMaint and maskDrain are SRV_ADMF_MAINT and SRV_ADMF_DRAIN. CMAINT is in
// neither: a server that the agent put in rotation keeps it.
const (
	maskMaint = FMAINT | IMAINT | RMAINT
	maskDrain = FDRAIN | IDRAIN
)

// Maint reports whether any kind of maintenance is in effect.
func (a Admin) Maint() bool { return a&maskMaint != 0 }

// Drain reports whether any kind of drain is in effect.
func (a Admin) Drain() bool { return a&maskDrain != 0 }

// String names the bits, such as "FDRAIN|IMAINT", or "none".
func (a Admin) String() string {
	names := []string{"FMAINT", "IMAINT", "CMAINT", "FDRAIN", "IDRAIN", "RMAINT", "HMAINT"}
	return bitNames(uint64(a), names)
}

// Op is srv_op_state: what HAProxy does with the server at present.
type Op uint8

// The values of [Op] (include/haproxy/server-t.h, enum srv_state).
const (
	OpStopped  Op = iota // gets no traffic: down or in maintenance
	OpStarting           // in slowstart, the weight is still ramping up
	OpRunning            // fully up; a drained server is running as well
	OpStopping           // up but leaving, by a 404 of "disable-on-404"
)

// String returns "stopped", "starting", "running", "stopping" or "op(N)".
func (o Op) String() string {
	names := []string{"stopped", "starting", "running", "stopping"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// AgentState is srv_agent_state: the bits of a server's agent check
// (include/haproxy/check-t.h, CHK_ST_*). Zero is a server without one; port
// and address say nothing about that, as "no-agent-check" leaves them set.
type AgentState uint8

// The bits of [AgentState].
const (
	AgentInProgress AgentState = 1 << iota // a check is running
	AgentConfigured                        // the line has "agent-check"
	AgentEnabled                           // not switched off by "disable agent"
	AgentPaused                            // never set for an agent: it runs in maintenance, too
	AgentMark                              // tells an agent check from a health check
)

// Enrolled reports whether the server has an agent check.
func (s AgentState) Enrolled() bool { return s&AgentConfigured != 0 }

// Enabled reports whether HAProxy asks the agent: enrolled, and nobody used
// "disable agent" on the socket.
func (s AgentState) Enabled() bool { return s.Enrolled() && s&AgentEnabled != 0 }

// String names the bits, such as "configured|enabled|agent", or "none".
func (s AgentState) String() string {
	return bitNames(uint64(s), []string{"in-progress", "configured", "enabled", "paused", "agent"})
}

func bitNames(bits uint64, names []string) string {
	var set []string
	for i, name := range names {
		if bits&(1<<i) != 0 {
			set = append(set, name)
			bits &^= 1 << i
		}
	}
	if bits != 0 {
		set = append(set, fmt.Sprintf("0x%x", bits))
	}
	if set == nil {
		return "none"
	}
	return strings.Join(set, "|")
}
