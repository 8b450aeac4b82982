package main

import "fmt"

// A goal is what one figure must be at most.
type goal struct {
	what   string
	got    float64
	most   float64
	format string // of both
}

// verdicts prints each goal, what was measured and whether it is met, and
// returns how many are not.
func (b *bench) verdicts() (unmet int) {
	p := &printer{out: b.out}
	p.printf("\n%-76s %10s %10s\n", "goal", "measured", "at most")
	for _, g := range b.goals() {
		verdict := "met"
		if !(g.got <= g.most) { // NaN is not met either
			verdict, unmet = "NOT MET", unmet+1
		}
		p.printf("%-76s %10s %10s  %s\n", g.what, fmt.Sprintf(g.format, g.got), fmt.Sprintf(g.format, g.most), verdict)
	}
	p.printf("the long run: %s\nthe stall: %s\n", b.soaked.why(), b.stalled.why())
	if b.fleet == nil {
		p.printf("no HAProxy here: nothing measured with one\n")
	}
	p.printf("the time from a write to the file: make bench BENCH=EndToEnd\n")
	if p.err != nil {
		unmet++
	}
	return unmet
}

func (b *bench) goals() []goal {
	without := units // a daemon
	if b.systemd == nil {
		without = shells
	}
	cpu := func(s sample) float64 { return s.CPU }
	all := []goal{
		{"CPU a check at 5,000/s, to C", b.ratio(busy, responder, floor, cpu), 1.3, "%.2f"},
		{"the same while 10,000 keys are replaced every second", b.ratio(busy, reload10k, floor, cpu), 1.3, "%.2f"},
		{"the same while 100,000 keys are replaced every second", b.ratio(busy, reload100k, floor, cpu), 1.3, "%.2f"},
		{"CPU a check at 500/s, to C", b.ratio(calm, responder, floor, cpu), 2.5, "%.2f"},
		{"the same at 500/s while 100,000 keys are replaced every second", b.ratio(calm, reload100k, floor, cpu), 2.5, "%.2f"},
		{"CPU a check at 5,000/s, to a goroutine each", b.ratio(busy, responder, goroutines, cpu), 1 / 2.5, "%.3f"},
		{"CPU a check in a closed loop, to " + without, b.ratio(closed, responder, without, cpu), 1.0 / 200, "%.5f"},
		{"anonymous memory in the long run, 10,000 keys replaced every second, MB", b.soaked.Anon, 12, "%.1f"},
		{"resident memory in the long run, MB", b.soaked.RSS, 25, "%.1f"},
		{"TIME_WAIT left by the long run at 5,000/s", b.soaked.TimeWait, 0, "%.0f"},
		{"checks of the long run without a reply", b.soaked.failed(), 0, "%.0f"},
		{"listen overflows by a stall of 500 ms at 5,000/s", b.stalled.Overflows, 0, "%.0f"},
		{"checks of the stall without a reply", b.stalled.failed(), 0, "%.0f"},
	}
	if b.fleet != nil {
		all = append(all, b.fleet.goals()...)
	}
	return all
}
