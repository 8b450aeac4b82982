package responder

import (
	"net"
	"os"
	"time"

	"hadrain/internal/agentcheck"
	"hadrain/internal/desired"
)

// Defaults of [Config].
const (
	DefaultMaxConnections = agentcheck.DefaultMaxConnections
	DefaultMaxRows        = 10_000
)

// Config says what a responder serves, and where.
type Config struct {
	// State is the path of the state file. It need not exist yet.
	State string
	// Agent are the listeners for HAProxy, TCP or unix; HTTP those for people
	// and Prometheus, possibly none. Run closes them.
	Agent []net.Listener
	HTTP  []net.Listener
	// WebConfig is the path of a Prometheus web configuration file. If empty,
	// HTTP has neither TLS nor authentication.
	WebConfig string
	// Form is how answers are put to questions that do not choose for themselves.
	Form desired.Form
	// MaxConnections is how many connections of agent checks are open at once.
	// If zero, DefaultMaxConnections. It is lowered to what the limit of
	// descriptors leaves room for.
	MaxConnections int
	// MaxRows is how many rows are remembered. If zero, DefaultMaxRows.
	MaxRows int

	// Reload makes the state file be read again at each signal, however
	// unchanged it looks. It may be nil.
	Reload <-chan os.Signal
	// Notify is told about the daemon's life in the words of sd_notify(3). If
	// nil, nobody is.
	Notify func(state string)
	// Watchdog is how often Notify must hear that the loop which accepts checks
	// makes progress. If zero, it does not.
	Watchdog time.Duration
}
