package main

import (
	"fmt"
	"slices"
	"text/tabwriter"
)

// print writes a table for each load: medians over the rounds, and the CPU of
// each variant against that of the floor in the same round.
func (b *bench) print() error {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, l := range loads {
		results := b.results[l.name]
		if _, err := fmt.Fprintf(w, "\n%s\tchecks/s\tCPU us\tx floor\tp50 us\tp99 us\tp99.9 us\tRSS MB\tanon MB\tTIME_WAIT\toverflows\terrors\t\n", l.name); err != nil {
			return err
		}
		for _, v := range variants(b) {
			samples := results[v.name]
			if len(samples) == 0 {
				continue
			}
			if err := row(w, v.name, samples, results[floorName]); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

func row(w *tabwriter.Writer, name string, samples, floor []sample) error {
	m := func(get func(sample) float64) float64 { return median(samples, get) }
	var ratios []float64
	for i, s := range samples {
		ratios = append(ratios, s.CPU/floor[i].CPU)
	}
	_, err := fmt.Fprintf(w, "%s\t%.0f\t%.1f\t%.2f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t\n", name,
		m(func(s sample) float64 { return s.Done / s.Seconds }), m(func(s sample) float64 { return s.CPU }), middle(ratios),
		m(func(s sample) float64 { return s.P50 }), m(func(s sample) float64 { return s.P99 }), m(func(s sample) float64 { return s.P999 }),
		m(func(s sample) float64 { return s.RSS / 1024 }), m(func(s sample) float64 { return s.Anon / 1024 }),
		m(func(s sample) float64 { return s.TimeWait }), m(func(s sample) float64 { return s.Overflows }),
		m(func(s sample) float64 { return s.Errors + s.Timeouts + s.Skipped }))
	return err
}

func median(samples []sample, get func(sample) float64) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, get(s))
	}
	return middle(all)
}

func middle(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
