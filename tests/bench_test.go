package tests_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// BenchmarkEndToEnd measures the time from a PUT to Consul to the replaced
// state file, with 1,000 keys, for writes that come further apart than render's
// quiet time. Time per operation is the pace of the writes; p50 and p99 count.
func BenchmarkEndToEnd(b *testing.B) {
	s := &stack{t: b, root: "hadrain", dir: testpeer.Dir(b)}
	s.consul = testpeer.Consul(b, testpeer.ConsulConfig{})
	s.kv = s.consul.Client(b).KV()
	s.mark()
	s.fill(1000)
	p := s.run(nil)
	s.wantKeys(p, 1000)
	notices := statefile.Watch(b.Context(), s.statePath())
	pace := time.NewTicker(250 * time.Millisecond)
	defer pace.Stop()
	var took []time.Duration
	for b.Loop() {
		<-pace.C
		value := fmt.Sprintf("%d%%", len(took)%100)
		start := time.Now()
		s.put("web/server-000500", value)
		s.awaitValue(notices, value)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	for name, share := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99} {
		b.ReportMetric(float64(took[int(share*float64(len(took)-1))].Microseconds())/1000, name)
	}
}

// awaitValue waits until the file has value for the server that is written.
func (s *stack) awaitValue(notices <-chan struct{}, value string) {
	s.t.Helper()
	timeout := time.After(testpeer.Timeout(s.t))
	for {
		select {
		case <-notices:
		case <-timeout:
			s.t.Fatalf("the file never said %s", value)
		}
		if f, _, err := statefile.Load(s.statePath()); err == nil && f.Rows[500].State.String() == value {
			return
		}
	}
}
