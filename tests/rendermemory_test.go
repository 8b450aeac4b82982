package tests_test

import (
	"fmt"
	"testing"

	"hadrain/internal/testpeer"
)

// Code that only the start needed is not resident once the file is there.
func TestRenderForgetsItsStart(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	s.put("web/a", "drain")
	cmd := s.renderCommand()
	cmd.Path = testpeer.BuildPlain(t, "hadrain-render") // the race detector's own memory would hide it
	p := testpeer.Start(t, cmd)
	s.wantRows(p, "web/a drain")
	testpeer.WaitFor(t, "at most three quarters of the most memory", func() (bool, string) {
		now, most := p.Memory(t, "VmRSS"), p.Memory(t, "VmHWM")
		return now <= most*3/4, fmt.Sprintf("now %d KiB, most %d KiB\n%s", now, most, p.Output())
	})
	s.put("web/a", "maint")
	s.wantRows(p, "web/a maint")
}
