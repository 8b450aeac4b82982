package render

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"hadrain/internal/kv"
	"hadrain/internal/statefile"
)

// The defaults of the flags that [Config] has fields for.
const (
	DefaultRoot         = "hadrain"
	DefaultState        = "/var/lib/hadrain/state"
	DefaultStartTimeout = 10 * time.Second
	DefaultQuiet        = 200 * time.Millisecond
	DefaultMaxKeys      = 200_000
	DefaultMaxBytes     = 64 << 20
)

const (
	// minQuiet keeps a server that does not hold reads from being read in a hot loop.
	minQuiet = 10 * time.Millisecond
	// maxQuiet bounds how long nothing is read after a change. It is below the
	// watchdog of our unit, which is fed after each read.
	maxQuiet = time.Minute
)

// Config says what render reads and writes.
type Config struct {
	Consul kv.Config // MaxBytes bounds the answer of Consul
	Root   string    // KV root
	State  string    // path of the state file, or of a link to it, which is followed once; empty: none is written
	Host   string    // for the file's header; empty: the name of this machine

	Templates []Template // further files
	// List, if not nil, returns at each signal of Reload what Templates are from
	// then on. After an error they stay.
	List func() ([]Template, error)

	StartTimeout time.Duration // how long the first accepted read may take
	Quiet        time.Duration // least time between a change and the next read; see [kv.WatchConfig]
	MaxKeys      int           // most keys that are accepted; 0: any number

	Listen    func() (net.Listener, error) // opens the port for HTTP, once the files are locked; nil: none
	WebConfig string                       // Prometheus web configuration file for HTTP; empty: none

	// Reload makes templates, certificates and authorities be read again at each
	// signal; nil: never. What cannot be read leaves the one before in use.
	Reload <-chan os.Signal

	// Ready, if not nil, is called once, after the first accepted read was
	// installed.
	Ready func()
	// Notify, if not nil, tells the service manager: it is given assignments as
	// sd_notify(3) takes them.
	Notify func(state string)
}

// Check returns an error if c cannot be run. It contacts nobody.
func (c *Config) Check() error {
	if err := errors.Join(kv.CheckRoot(c.Root), c.Consul.Check()); err != nil {
		return err
	}
	switch {
	case c.StartTimeout <= 0:
		return fmt.Errorf("start timeout %s: want more than 0", c.StartTimeout)
	case c.Quiet < minQuiet, c.Quiet > maxQuiet:
		return fmt.Errorf("quiet time %s: want %s to %s", c.Quiet, minQuiet, maxQuiet)
	case c.MaxKeys < 0:
		return fmt.Errorf("most keys %d: want 0 (any number) or more", c.MaxKeys)
	case c.Consul.MaxBytes < 0:
		return fmt.Errorf("most bytes %d: want 0 (any number) or more", c.Consul.MaxBytes)
	case c.State == "" && len(c.Templates) == 0:
		return errors.New("nothing to do: the state file is switched off and there is no template")
	case strings.HasSuffix(c.State, "/"):
		return fmt.Errorf("state file %q: want the path of a file", c.State)
	}
	return c.checkTemplates()
}

// checkTemplates refuses also two writers of one file, and a template that would
// be written over, under whatever names.
func (c *Config) checkTemplates() error {
	seen, sources := map[string]bool{}, map[string]bool{}
	if c.State != "" {
		seen[statefile.Identity(c.State)] = true
	}
	for _, t := range c.Templates {
		sources[statefile.Identity(t.Source)] = true
	}
	for _, t := range c.Templates {
		if t.Timeout < 0 {
			return fmt.Errorf("template %s: time-out %s: want more than 0", t.Source, t.Timeout)
		}
		if err := checkAllow(t.Allow); err != nil {
			return fmt.Errorf("template %s: %w", t.Source, err)
		}
		path := statefile.Identity(t.Destination)
		if seen[path] {
			return fmt.Errorf("template %s: %s is written already", t.Source, path)
		}
		if sources[path] {
			return fmt.Errorf("template %s: %s is a template itself: choose another destination", t.Source, path)
		}
		seen[path] = true
	}
	return nil
}

// hostName returns the name of this machine as the file's header can hold it.
func hostName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the name of this machine: %w", err)
	}
	name = strings.Join(strings.Fields(name), "-")
	if name == "" {
		return "", errors.New("this machine has no name")
	}
	return name, nil
}
