package benchrender_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// cpu returns what the threads of a process have used so far.
func cpu(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		b.Fatalf("no threads of process %d: %v", pid, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended; Go rarely ends one
		}
		var ns int64
		if _, err := fmt.Sscan(string(data), &ns); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// memory returns an amount of memory of a process, in MiB.
func memory(b *testing.B, p *testpeer.Process, name string) float64 {
	b.Helper()
	return float64(p.Memory(b, name)) / 1024
}

func median[T int64 | float64 | time.Duration](list []T) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// overall returns the median over the rounds.
func overall(s *subject, value func(sample) float64) float64 {
	list := make([]float64, len(s.samples))
	for i := range list {
		list[i] = value(s.samples[i])
	}
	return median(list)
}

// ratios returns the median over the rounds of the ratio within each.
func ratios(a, b *subject, value func(sample) float64) float64 {
	list := make([]float64, len(a.samples))
	for i := range list {
		list[i] = value(a.samples[i]) / value(b.samples[i])
	}
	return median(list)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
