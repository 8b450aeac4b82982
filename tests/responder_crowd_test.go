package tests_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// Checks go on beside 10,000 connections from two processes that never ask,
// memory stays bounded, and in the end everything is as it was before.
func TestCrowd(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limit  int // of connections
		memory int // anonymous, in MiB
	}{
		{"more than there is room for", 1024, 60},
		{"room for all", 12_000, 300},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rows, questions := fleet(1000)
			s := newService(t, rows, "--max-connections", fmt.Sprint(tc.limit))
			newAskers(t, s.agent.Addr(), len(questions), questions).run(1, 1, nil)
			before := s.resources()

			addr := s.agent.Addr().String()
			stops := []func(){startCrowd(t, addr, 5000), startCrowd(t, addr, 5000)}
			a := newAskers(t, s.agent.Addr(), 50_000, questions)
			most, kib := 0.0, 0
			start := time.Now()
			a.run(4, 1000, func() {
				most, kib = max(most, s.metric("hadrain_responder_connections")), max(kib, s.process.Memory(s.t, "RssAnon"))
			})
			t.Logf("%d checks in %v, %d of them without a reply; %.0f connections at most, %.0f accepted, %.0f evicted, %d KiB", a.total,
				time.Since(start).Round(time.Millisecond), len(a.failures), most, s.metric("hadrain_responder_connections_total"),
				s.metric("hadrain_responder_connections_evicted_total"), kib)
			s.judgeCrowd(a, tc.limit, most)
			if kib > tc.memory<<10 {
				t.Errorf("%d KiB of anonymous memory, want at most %d MiB", kib, tc.memory)
			}
			for _, stop := range stops {
				stop()
			}
			testpeer.WaitFor(t, "goroutines and descriptors to be as before", func() (bool, string) {
				now := s.resources()
				return now.connections == 0 && now.goroutines <= before.goroutines && now.files <= before.files,
					fmt.Sprintf("%+v, before %+v", now, before)
			})
		})
	}
}

// judgeCrowd allows a check in a thousand to be cut: one that this machine
// stalled between connecting and asking looks like the crowd.
func (s *service) judgeCrowd(a *askers, limit int, most float64) {
	s.t.Helper()
	for _, f := range a.failures {
		if !errors.Is(f.err, errCut) || len(a.failures) > int(a.total/1000) {
			s.t.Errorf("a check of %v: %v", f.to.Sub(f.from), f.err)
		}
	}
	if most > float64(limit+1) { // the one just accepted makes room by itself
		s.t.Errorf("%.0f connections, want at most %d", most, limit)
	}
	if least := 10_000.0; s.metric("hadrain_responder_connections_total") < least {
		s.t.Errorf("fewer than %.0f connections came, so this test says nothing", least)
	}
}

// resources are what a responder must give back.
type resources struct{ connections, goroutines, files float64 }

func (s *service) resources() resources {
	s.t.Helper()
	return resources{s.metric("hadrain_responder_connections"), s.metric("go_goroutines"), s.metric("process_open_fds")}
}

// metric returns the value of a metric without labels, -1 if there is none.
func (s *service) metric(name string) float64 {
	text, err := scrape(s.t, s.http.Addr().String())
	if err != nil {
		s.t.Error(err)
		return -1
	}
	value, err := valueOf(text, name)
	if err != nil {
		s.t.Error(err)
		return -1
	}
	return value
}
