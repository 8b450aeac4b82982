package render

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
)

func TestLogRejects(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	file := func(values ...string) *statefile.File {
		f := &statefile.File{}
		for i, value := range values {
			f.Rows = append(f.Rows, desired.Accept(fmt.Sprintf("web/%03d", i), value, desired.Row{State: desired.Drain}, true))
		}
		return f
	}
	many := make([]string, mostRejects+5)
	for _, tc := range []struct {
		name        string
		before, now *statefile.File
		want        string
	}{
		{"first file", nil, file("ready", "dran"), `msg="value rejected" key=web/001 reason="\"dran\": want ready, drain, maint, hold or N%; keeping drain"` + "\n"},
		{"nothing new", file("ready", "dran"), file("drain", "dran"), ""},
		{"mended", file("ready", "dran"), file("ready", "drain"), `msg="value accepted again" key=web/001 state=drain` + "\n"},
		{"deleted", file("ready", "dran"), file("ready"), ""},
		{"many", nil, file(many...), strings.Repeat("*", mostRejects) + `msg="more values were rejected or accepted again" keys=5` + "\n"},
	} {
		out.Reset()
		logRejects(log, tc.before, tc.now)
		got := out.String()
		if tc.name == "many" {
			lines := strings.SplitAfter(got, "\n")
			got = strings.Repeat("*", len(lines)-2) + lines[len(lines)-2]
		}
		if got != tc.want {
			t.Errorf("%s: logged\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}
