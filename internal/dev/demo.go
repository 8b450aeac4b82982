package dev

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/haproxy"
)

const (
	// stepDeadline is how long one event of the story may take. The longest is
	// the return of a Consul: a read without a leader is held for 7 s.
	stepDeadline = 40 * time.Second
	// quietAnswers is how many answers in a row from other servers prove that a
	// server gets no more requests: in rotation it would give about every fifth.
	quietAnswers = 40
)

// story plays the demonstration: each step does something a user would type
// and waits until HAProxy shows what it should.
type story struct {
	*environment
	out io.Writer
	// write sets a key as the commands of the CLI do.
	write func(ctx context.Context, key string, state desired.State, reason string) error
}

// step is one step of the story.
type step struct {
	title   string
	note    string // what a newcomer does not know yet; "" for nothing
	command string // what a user would type; "" for none
	expect  string
	act     func(ctx context.Context) (string, error) // nil for none; what it says is printed
	until   []probe
}

// play tells the whole story. The error names the step that failed and what
// was seen instead.
func (s *story) play(ctx context.Context) error {
	began := time.Now()
	canaries := inGroup(s.servers, canary)
	var all []string
	for _, server := range s.servers {
		all = append(all, server.key())
	}
	steps := s.drainSteps(all, canaries)
	if _, running := s.store.(runningConsul); running {
		fmt.Fprintf(s.out, "The steps that stop the store are left out: %v.\n\n", errNotOurs)
	} else {
		steps = append(steps, s.outageSteps(canaries)...)
	}
	steps = append(steps, s.returnSteps(canaries)...)
	for i, step := range steps {
		fmt.Fprintf(s.out, "[%d/%d] %s\n", i+1, len(steps), step.title)
		if err := s.tell(ctx, step); err != nil {
			return fmt.Errorf("step %d of the demonstration (%s): %w", i+1, step.title, err)
		}
	}
	c := s.traffic.counts()
	if c.failed > 0 {
		return fmt.Errorf("the demonstration: %d of %d requests failed, the last one: %s", c.failed, c.failed+c.answers, c.lastError)
	}
	fmt.Fprintf(s.out, "The story took %v. %d requests went through HAProxy, 0 failed.\n\nNow try: %s\n",
		time.Since(began).Round(100*time.Millisecond), c.answers, s.again())
	return nil
}

// again is how a user starts this to play with: as they started the story,
// which in a checkout was make demo.
func (s *story) again() string {
	if s.command == "bin/hadrain" {
		return "make run"
	}
	return s.command + " dev"
}

func (s *story) tell(ctx context.Context, step step) error {
	if step.note != "" {
		fmt.Fprintf(s.out, "      %s\n", step.note)
	}
	if step.command != "" {
		fmt.Fprintf(s.out, "      $ %s\n", step.command)
	}
	fmt.Fprintf(s.out, "      expect: %s\n", step.expect)
	began := time.Now()
	if step.act != nil {
		said, err := step.act(ctx)
		if err != nil {
			return err
		}
		if said != "" {
			fmt.Fprintf(s.out, "      %4.1f s: %s\n", time.Since(began).Seconds(), said)
		}
	}
	for _, p := range step.until {
		seen, err := await(ctx, p, stepDeadline)
		if err != nil {
			return fmt.Errorf("expected: %s; %w", step.expect, err)
		}
		fmt.Fprintf(s.out, "      %4.1f s: %s\n", time.Since(began).Seconds(), seen)
	}
	fmt.Fprintln(s.out)
	return nil
}

// set is the act of writing a state for the canaries, with the command for it.
func (s *story) set(state desired.State, reason string) (command string, act func(context.Context) (string, error)) {
	command = fmt.Sprintf("%s %s %s --reason %q --yes", s.command, state, canary, reason)
	return command, func(ctx context.Context) (string, error) {
		return "", s.write(ctx, canary, state, reason)
	}
}

func (s *story) drainSteps(all, canaries []string) []step {
	names := strings.Join(canaries, " and ")
	drain, write := s.set(desired.Drain, "demonstration: deploying the canaries")
	return []step{{
		title:  "everything is up",
		expect: "HAProxy shows all servers UP, and each of them answers requests",
		until:  []probe{s.shows("UP", 0, all), s.answering(all)},
	}, {
		title:   "one key drains the canaries of both backends",
		note:    canary + " is a group: " + names + " name this key, after their own, in agent-send",
		command: drain,
		expect:  "HAProxy shows DRAIN for " + names + "; their requests stop, none fails",
		act:     write,
		until: []probe{
			s.holds(canary, desired.Drain), s.shows("DRAIN", haproxy.FDRAIN, canaries), s.quiet(quietAnswers, canaries),
		},
	}, {
		title:   "HAProxy is reloaded",
		command: s.haproxy.reloadCommand() + "   # what systemctl reload haproxy does",
		expect:  "the new worker, which starts from its configuration, shows DRAIN as well",
		act: func(ctx context.Context) (string, error) {
			before, after, err := s.haproxy.reload(ctx)
			return fmt.Sprintf("worker %d was replaced by worker %d", before, after), err
		},
		until: []probe{s.shows("DRAIN", haproxy.FDRAIN, canaries), s.quiet(quietAnswers, canaries)},
	}}
}

func (s *story) outageSteps(canaries []string) []step {
	var back time.Time
	return []step{{
		title:  "the store goes away",
		expect: "render keeps the state file and says how old it is; after three more agent checks HAProxy still shows DRAIN",
		act: func(context.Context) (string, error) {
			return "stopped " + s.store.name(), s.store.stop()
		},
		until: []probe{
			s.stale(), s.checks(3, canaries[0]),
			s.shows("DRAIN", haproxy.FDRAIN, canaries), s.quiet(quietAnswers, canaries),
		},
	}, {
		title:  "the store comes back",
		expect: "render reads it again by itself, and nothing changes",
		act: func(ctx context.Context) (string, error) {
			err := s.store.start(ctx)
			back = time.Now()
			return "started " + s.store.name(), err
		},
		until: []probe{
			func(ctx context.Context) (string, bool) { return s.fresh(back)(ctx) },
			s.shows("DRAIN", haproxy.FDRAIN, canaries),
		},
	}}
}

func (s *story) returnSteps(canaries []string) []step {
	names := strings.Join(canaries, " and ")
	maint, writeMaint := s.set(desired.Maint, "demonstration: replacing the canaries")
	ready, writeReady := s.set(desired.Ready, "demonstration: the canaries are back")
	return []step{{
		title:   "maintenance",
		command: maint,
		expect:  "HAProxy shows MAINT for " + names,
		act:     writeMaint,
		until:   []probe{s.holds(canary, desired.Maint), s.shows("MAINT", haproxy.FMAINT, canaries)},
	}, {
		title:   "back in rotation, with a slow start",
		command: ready,
		expect:  "HAProxy raises the weight of " + names + " over " + slowstart.String() + ", and they answer requests again",
		act:     writeReady,
		until:   []probe{s.holds(canary, desired.Ready), s.ramps(canaries), s.answering(canaries)},
	}}
}
