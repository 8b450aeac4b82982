package benchrender_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"hadrain/internal/testpeer"
)

// What issue 3 demands of a change, next to stock consul-template.
const (
	mostTime   = 1.25
	mostMemory = 1.0
)

// BenchmarkRender follows changes of one key among many by hadrain-render and by
// stock consul-template, on the same data of the same Consul, in turns of random
// order. It counts from the write to the moment that the file is replaced. A
// ratio is the median over the rounds of that between the two of one round.
//
// HADRAIN_BENCH_ASSERT=1 makes a goal that is not met an error.
func BenchmarkRender(b *testing.B) {
	for _, size := range []struct{ keys, rounds, changes int }{{1000, 3, 6}, {10_000, 3, 6}, {100_000, 3, 4}} {
		b.Run(fmt.Sprintf("keys=%d", size.keys), func(b *testing.B) {
			f := newField(b, size.keys)
			subjects := []*subject{f.hadrain(), f.stock()}
			for b.Loop() { // more than its time is spent in one
				for range size.rounds {
					rand.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
					for _, s := range subjects {
						f.round(s, size.changes)
					}
				}
			}
			if subjects[0].name == "stock" {
				subjects[0], subjects[1] = subjects[1], subjects[0]
			}
			report(b, f, subjects[0], subjects[1])
		})
	}
}

// A sample is what one round of one subject came to.
type sample struct {
	start  time.Duration // from the start of the process to its first file
	change time.Duration // from a write to the replaced file; median
	cpu    time.Duration // of the process for a change; mean

	memory, anonymous float64 // most resident memory; in the end without that of files, such as the program; MiB
}

// round runs s from its start through some changes.
func (f *field) round(s *subject, changes int) {
	f.b.Helper()
	if err := os.RemoveAll(s.path); err != nil {
		f.b.Fatal(err)
	}
	begin := time.Now()
	p := testpeer.Start(f.b, s.command())
	got := sample{start: f.awaitFile(s, p, "").Sub(begin)}
	<-time.After(pause)
	used := cpu(f.b, p.Pid())
	var took []time.Duration
	for range changes {
		note := f.change()
		took = append(took, f.awaitFile(s, p, note).Sub(f.wrote))
		<-time.After(pause)
	}
	got.change = median(took)
	got.cpu = (cpu(f.b, p.Pid()) - used) / time.Duration(changes)
	got.memory, got.anonymous = memory(f.b, p, "VmHWM"), memory(f.b, p, "RssAnon")
	s.samples = append(s.samples, got)
	if s.finish != nil {
		s.finish()
	}
	p.Kill(f.b)
}

// report prints the table of one size, and its ratios as metrics.
func report(b *testing.B, f *field, ours, stock *subject) {
	b.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d keys\thadrain-render\tconsul-template\tratio\n", f.keys)
	row := func(name, unit string, value func(sample) float64) float64 {
		a, c, ratio := overall(ours, value), overall(stock, value), ratios(ours, stock, value)
		fmt.Fprintf(w, "%s\t%.1f %s\t%.1f %s\t%.2f\n", name, a, unit, c, unit, ratio)
		return ratio
	}
	row("start to file", "ms", func(s sample) float64 { return ms(s.start) })
	change := row("write to file", "ms", func(s sample) float64 { return ms(s.change) })
	row("CPU for a change", "ms", func(s sample) float64 { return ms(s.cpu) })
	most := row("peak memory", "MiB", func(s sample) float64 { return s.memory })
	row("anonymous memory", "MiB", func(s sample) float64 { return s.anonymous })
	fmt.Fprintf(w, "of write to file: read\t%.1f ms\t\t\n", ms(f.readOnce()))
	fmt.Fprintf(w, "render\t%.1f ms\t\t\nwrite and sync\t%.1f ms\t\t\n", f.render, f.write)
	fmt.Fprintf(w, "sync of the directory\t%.1f ms\tnone\t(not in write to file)\n", ms(f.syncDirectory()))
	w.Flush()
	fmt.Printf("\n%s", text.String()) // the log of a benchmark is cut after ten lines
	b.ReportMetric(change, "time/stock")
	b.ReportMetric(most, "memory/stock")
	if os.Getenv("HADRAIN_BENCH_ASSERT") != "" && (change > mostTime || most > mostMemory) {
		b.Errorf("time %.2f and memory %.2f of stock's, want at most %.2f and %.2f", change, most, mostTime, mostMemory)
	}
}
