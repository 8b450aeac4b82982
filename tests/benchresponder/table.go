package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"text/tabwriter"
)

// A figure is a column of the tables.
type figure struct {
	name  string
	get   func(sample) float64
	ratio bool // also printed against the floor
}

var figures = []figure{
	{"checks/s", func(s sample) float64 { return s.Done / s.Seconds }, true},
	{"CPU us", func(s sample) float64 { return s.CPU }, true},
	{"p50 us", func(s sample) float64 { return s.P50 }, true},
	{"p99 us", func(s sample) float64 { return s.P99 }, true},
	{"p99.9 us", func(s sample) float64 { return s.P999 }, true},
	{"RSS MB", func(s sample) float64 { return s.RSS }, true},
	{"anon MB", func(s sample) float64 { return s.Anon }, true},
	{"TIME_WAIT", func(s sample) float64 { return s.TimeWait }, false},
	{"overflows", func(s sample) float64 { return s.Overflows }, false},
	{"closed first", func(s sample) float64 { return s.PeerClosed }, false},
	{"failed", sample.failed, false},
}

// table prints one table for each load: medians over the rounds, and in
// brackets the median of the ratios to the floor of the same round.
func (b *bench) table() error {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	p := &printer{out: w}
	for _, l := range loads {
		p.printf("\n%s\t", l.name)
		for _, f := range figures {
			p.printf("%s\t", f.name)
		}
		p.printf("\n")
		for _, name := range l.variants {
			if len(b.results[l.name][name]) == 0 {
				continue
			}
			p.printf("%s\t", name)
			for _, f := range figures {
				p.printf("%s\t", b.cell(l.name, name, f))
			}
			p.printf("\n")
		}
		if b.rounds == 1 {
			continue
		}
		low, high := b.spread(l.name)
		p.printf("the floor's CPU a check was %.2f to %.2f of its median: that much is noise\n", low, high)
	}
	return errors.Join(p.err, w.Flush())
}

func (b *bench) cell(load, name string, f figure) string {
	value := median(b.results[load][name], f.get)
	text := fmt.Sprintf("%.0f", value)
	if value < 100 && f.ratio {
		text = fmt.Sprintf("%.1f", value)
	}
	if f.ratio {
		text += fmt.Sprintf(" (%.2f)", b.ratio(load, name, floor, f.get))
	}
	return text
}

// ratio returns the median over the rounds of that between two variants.
func (b *bench) ratio(load, name, to string, get func(sample) float64) float64 {
	var all []float64
	for i, s := range b.results[load][name] {
		all = append(all, get(s)/max(get(b.results[load][to][i]), 1e-9))
	}
	return middle(all)
}

// spread returns the least and the most that the floor cost, against its median.
func (b *bench) spread(load string) (low, high float64) {
	cpu := func(s sample) float64 { return s.CPU }
	typical := median(b.results[load][floor], cpu)
	low, high = 1, 1
	for _, s := range b.results[load][floor] {
		low, high = min(low, s.CPU/typical), max(high, s.CPU/typical)
	}
	return low, high
}

func median(samples []sample, get func(sample) float64) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, get(s))
	}
	return middle(all)
}

// middle returns the median; of two, their mean; of none, no number.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// A printer remembers the first error.
type printer struct {
	out interface{ Write(b []byte) (int, error) }
	err error
}

func (p *printer) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); p.err == nil {
		p.err = err
	}
}
