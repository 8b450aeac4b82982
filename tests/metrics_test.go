package tests_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

var (
	typeLine = regexp.MustCompile(`(?m)^# TYPE (hadrain_\w+) (\w+)$`)
	sample   = regexp.MustCompile(`(?m)^(hadrain_\w+)\{(.*)\} `)
	label    = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	tableRow = regexp.MustCompile("(?m)^\\| `(hadrain_(?:render|responder)_\\w+)` \\| (\\w+) \\|([^|]*)\\|")
	tick     = regexp.MustCompile("`(\\w+)`")
)

// served returns "type label,label" of each metric.
func served(text string) map[string]string {
	labels := map[string]string{}
	for _, match := range sample.FindAllStringSubmatch(text, -1) {
		var names []string
		for _, l := range label.FindAllStringSubmatch(match[2], -1) {
			if l[1] != "le" {
				names = append(names, l[1])
			}
		}
		labels[match[1]] = strings.Join(names, ",")
	}
	metrics := map[string]string{}
	for _, match := range typeLine.FindAllStringSubmatch(text, -1) {
		metrics[match[1]] = match[2] + " " + labels[match[1]]
	}
	return metrics
}

// documented returns the same of docs/metrics.md.
func documented(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(testpeer.Root(t), "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]string{}
	for _, match := range tableRow.FindAllStringSubmatch(string(page), -1) {
		var names []string
		for _, l := range tick.FindAllStringSubmatch(match[3], -1) {
			names = append(names, l[1])
		}
		metrics[match[1]] = match[2] + " " + strings.Join(names, ",")
	}
	return metrics
}

// The page of metrics says what the daemons serve, no more and no less, and
// Prometheus' own linter has nothing to say about it.
func TestMetricsAreDocumented(t *testing.T) {
	promtool := testpeer.Need(t, "promtool")
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.agent, s.http = listen(t), listen(t)
	s.mark()
	source := filepath.Join(s.dir, "source")
	write(t, source, `{{ desired "web/a" }}`)
	addr := unused(t)
	p := s.run(nil, "--http.listen", addr, "--template", source+":"+filepath.Join(s.dir, "out")+":false")
	s.wantRows(p)
	s.startResponder()
	s.consul.Stop(t) // some metrics are there only after the first failure
	p.WaitOutput(t, "reason=transport")
	var texts [2]string
	testpeer.WaitFor(t, "both to serve metrics of a state", func() (bool, string) {
		for i, addr := range []string{addr, s.http.Addr().String()} {
			text, err := scrape(t, addr)
			if err != nil {
				return false, err.Error()
			}
			texts[i] = text
		}
		return strings.Contains(texts[1], "\nhadrain_responder_state_keys"), texts[1]
	})

	got, want := map[string]string{}, documented(t)
	for _, text := range texts {
		maps.Copy(got, served(text))
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("promtool check metrics: %v\n%s", err, out)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] != got[name] {
			t.Errorf("%s is a %q, and docs/metrics.md has it as %q", name, got[name], want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[name]; !ok {
			t.Errorf("docs/metrics.md has %s, which nobody serves", name)
		}
	}
	documentedValues(t, strings.Join(texts[:], "\n"))
}

// documentedValues fails if a label has a value that the page does not name.
func documentedValues(t *testing.T, text string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(testpeer.Root(t), "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile(filepath.Join(testpeer.Root(t), "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range sample.FindAllStringSubmatch(text, -1) {
		for _, l := range label.FindAllStringSubmatch(match[2], -1) {
			switch name, value := l[1], l[2]; name {
			case "outcome", "answer":
				if !strings.Contains(string(page), value) {
					t.Errorf("docs/metrics.md says nothing about %s", match[0])
				}
			case "reason":
				if !strings.Contains(string(page)+string(runbook), value) {
					t.Errorf("neither docs/metrics.md nor docs/runbook.md says anything about %s", match[0])
				}
			}
		}
	}
}
