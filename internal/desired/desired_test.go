package desired_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hadrain/internal/desired"
)

func weight(t *testing.T, percent int) desired.State {
	t.Helper()
	s, err := desired.Weight(percent)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseValue(t *testing.T) {
	for raw, want := range map[string]desired.Value{
		"ready":                      {State: desired.Ready},
		"DRAIN":                      {State: desired.Drain},
		" Maint\r\n":                 {State: desired.Maint},
		"\thold\v\f":                 {State: desired.Hold},
		"0%":                         {State: weight(t, 0)},
		"7%":                         {State: weight(t, 7)},
		"007%":                       {State: weight(t, 7)},
		"100%":                       {State: weight(t, 100)},
		"drain # why":                {State: desired.Drain, Note: "why"},
		"drain\t#why":                {State: desired.Drain, Note: "why"},
		"drain #":                    {State: desired.Drain},
		"drain   #  a  # b ":         {State: desired.Drain, Note: "a  # b"},
		"50% # by=a\nreason":         {State: weight(t, 50), Note: "by=a\nreason"},
		"drain # \u00e9\xff invalid": {State: desired.Drain, Note: "\u00e9\xff invalid"},
	} {
		got, err := desired.ParseValue(raw)
		if err != nil || got != want {
			t.Errorf("ParseValue(%q) = %+v, %v, want %+v", raw, got, err, want)
		}
	}
}

func TestParseValueRefuses(t *testing.T) {
	for raw, reason := range map[string]string{
		"":             "empty value",
		" \n":          "empty value",
		"dran":         `"dran": want ready, drain, maint, hold or N%`,
		"up":           "health belongs to HAProxy's own checks",
		"DOWN":         "health belongs to HAProxy's own checks",
		"failed # why": "health belongs to HAProxy's own checks",
		"101%":         `"101%": want`,
		"-5%":          `"-5%": want`,
		"50":           `"50": want`,
		"50.5%":        `"50.5%": want`,
		"0100%":        `"0100%": want`,
		"%":            `"%": want`,
		"50 %":         `"50": want`,
		"drain#x":      `"drain#x": want`,
		"drain now":    "text after the state",
		"drain\n# x":   "text after the state",
		"# drain":      `"#": want`,
		"\x00drain":    `"\x00drain": want`,
		"\ufeffdrain":  `"\ufeffdrain": want`,
		"dra\u0131n":   `want ready`,
		"ready,drain":  `"ready,drain": want`,
		`"drain"`:      `"\"drain\"": want`,
	} {
		got, err := desired.ParseValue(raw)
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("ParseValue(%q) = %+v, %v, want an error with %q", raw, got, err, reason)
		}
	}
}

func TestWeight(t *testing.T) {
	for _, percent := range []int{-1, 101, 1 << 20} {
		if s, err := desired.Weight(percent); err == nil {
			t.Errorf("Weight(%d) = %v, want an error", percent, s)
		}
	}
	for _, s := range []desired.State{desired.Ready, desired.Drain, desired.Maint, desired.Hold} {
		if percent, ok := s.Percent(); ok {
			t.Errorf("%v.Percent() = %d, true, want false", s, percent)
		}
	}
	if percent, ok := weight(t, 0).Percent(); percent != 0 || !ok {
		t.Errorf("0%%.Percent() = %d, %t", percent, ok)
	}
}

func TestReply(t *testing.T) {
	up, bare := desired.Up, desired.NoWeight
	for _, tc := range []struct {
		state desired.State
		want  [4]string // usual, up, no weight, both
	}{
		{desired.Ready, [4]string{"ready 100%", "up ready 100%", "ready", "up ready"}},
		{desired.Drain, [4]string{"drain 100%", "up drain 100%", "drain", "up drain"}},
		{desired.Maint, [4]string{"maint 100%", "up maint 100%", "maint", "up maint"}},
		{weight(t, 50), [4]string{"ready 50%", "up ready 50%", "ready 50%", "up ready 50%"}},
		{weight(t, 0), [4]string{"ready 0%", "up ready 0%", "ready 0%", "up ready 0%"}},
		{desired.Hold, [4]string{"hold", "hold", "hold", "hold"}},
		{desired.Unset, [4]string{"hold", "hold", "hold", "hold"}},
	} {
		for i, form := range []desired.Form{0, up, bare, up | bare} {
			if got := tc.state.Reply(form); got != tc.want[i]+"\n" {
				t.Errorf("%v.Reply(%d) = %q, want %q", tc.state, form, got, tc.want[i]+"\n")
			}
		}
	}
}

func TestReplyAllocatesNothing(t *testing.T) {
	s := weight(t, 33)
	if n := testing.AllocsPerRun(100, func() { _ = s.Reply(desired.Up) }); n != 0 {
		t.Errorf("Reply allocates %v times", n)
	}
}

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"canary", "web/web-01", "a", ".x", "web/a#b", "web/%2F?", strings.Repeat("k", 256)} {
		if err := desired.CheckKey(key); err != nil {
			t.Errorf("CheckKey(%q) = %v, want nil", key, err)
		}
	}
	for key, reason := range map[string]string{
		"":                       "empty",
		"web/":                   "folder",
		"#web":                   "starts with '#'",
		"+up":                    "starts with '+'",
		"-weight":                "starts with '-'",
		"web/a b":                "white space",
		"web/a\nb":               "white space",
		"web/a\x00b":             "control character",
		"web/a\x7f":              "control character",
		"web/\u00e9":             "not ASCII",
		strings.Repeat("k", 257): "257 bytes",
	} {
		if err := desired.CheckKey(key); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("CheckKey(%q) = %v, want an error with %q", key, err, reason)
		}
	}
}

func TestAccept(t *testing.T) {
	const key = "web/web-07"
	drained := desired.Row{Key: key, State: desired.Drain, Note: "by=alice"}
	for _, tc := range []struct {
		name  string
		raw   string
		last  desired.Row
		known bool
		want  desired.Row
	}{
		{"first value", "drain # by=bob", desired.Row{}, false, desired.Row{Key: key, State: desired.Drain, Note: "by=bob"}},
		{"next value", "ready", drained, true, desired.Row{Key: key, State: desired.Ready}},
		{
			"typo keeps the last", "reday", drained, true,
			desired.Row{Key: key, State: desired.Drain, Rejected: `"reday": want ready, drain, maint, hold or N%; keeping drain`},
		},
		{
			"first value is a typo", "reday",
			desired.Row{},
			false,
			desired.Row{Key: key, State: desired.Unset, Rejected: `"reday": want ready, drain, maint, hold or N%; on hold`},
		},
		{
			"typo after hold", "reday",
			desired.Row{Key: key, State: desired.Hold},
			true,
			desired.Row{Key: key, State: desired.Hold, Rejected: `"reday": want ready, drain, maint, hold or N%; keeping hold`},
		},
		{
			"emptied", "", drained, true,
			desired.Row{Key: key, State: desired.Drain, Rejected: "empty value: want ready, drain, maint, hold or N%; keeping drain"},
		},
		{"note with a newline", "drain # a\nb", drained, true, desired.Row{Key: key, State: desired.Drain, Note: `a\nb`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := desired.Accept(key, tc.raw, tc.last, tc.known)
			if got != tc.want {
				t.Errorf("Accept = %+v, want %+v", got, tc.want)
			}
			// A rejected value stays what it is at the next read.
			if again := desired.Accept(key, tc.raw, got, true); again != got {
				t.Errorf("accepted again: %+v, want %+v", again, got)
			}
		})
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain text":                     "plain text",
		"caf\u00e9 \u2713":               "caf\u00e9 \u2713",
		"a\nb\tc\x00\x1b[31m":            `a\nb\tc\x00\x1b[31m`,
		"bad \xff utf-8":                 `bad \xff utf-8`,
		"right\u202eleft\u2028\u00a0":    `right\u202eleft\u2028\u00a0`,
		strings.Repeat("x", 200):         strings.Repeat("x", 200),
		strings.Repeat("x", 201):         strings.Repeat("x", 197) + "...",
		strings.Repeat("\u00e9", 101):    strings.Repeat("\u00e9", 98) + "...",
		strings.Repeat("x", 1<<20) + "y": strings.Repeat("x", 197) + "...",
	} {
		if got := desired.Printable(text); got != want {
			t.Errorf("Printable(%.40q) = %q, want %q", text, got, want)
		}
	}
}

func TestNote(t *testing.T) {
	at := time.Date(2026, 9, 9, 12, 0, 2, 0, time.UTC)
	n := desired.Note{By: "alice", At: at, Until: at.Add(time.Hour), Reason: `chg-123 "canary" = deploy`}
	const text = `by=alice at=2026-09-09T12:00:02Z until=2026-09-09T13:00:02Z reason="chg-123 \"canary\" = deploy"`
	if got := n.String(); got != text {
		t.Errorf("String() = %s, want %s", got, text)
	}
	if got := desired.ParseNote(text); got != n {
		t.Errorf("ParseNote = %+v, want %+v", got, n)
	}
	for _, free := range []string{"just text", "by=alice and more", `reason="open`, "at=yesterday", "color=red", "="} {
		if got := desired.ParseNote(free); got != (desired.Note{Reason: free}) {
			t.Errorf("ParseNote(%q) = %+v, want it whole as the reason", free, got)
		}
	}
}

func FuzzParseValue(f *testing.F) {
	for _, seed := range []string{"ready", "DRAIN # by=a", " 50%\n", "dran", "", "drain#", "maint # \x00\xff", "100% # # "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		value, err := desired.ParseValue(raw)
		if err != nil {
			if desired.Printable(err.Error()) != err.Error() && len(err.Error()) <= desired.MaxNote {
				t.Errorf("error is not printable: %q", err)
			}
			return
		}
		again, err := desired.ParseValue(value.String())
		if err != nil || again != value {
			t.Errorf("ParseValue(%q).String() = %q, which reads as %+v, %v", raw, value, again, err)
		}
	})
}

func FuzzNote(f *testing.F) {
	f.Add("alice", "why", int64(1))
	f.Add("a b", "\"\n", int64(0))
	f.Add("=", "x=y", int64(-1))
	f.Fuzz(func(t *testing.T, by, reason string, at int64) {
		n := desired.Note{By: by, Reason: reason}
		if at > 0 && at < 1<<37 {
			n.At = time.Unix(at, 0).UTC()
		}
		text := n.String()
		if got := desired.ParseNote(text); strings.ToValidUTF8(by+reason, "") == by+reason && got != n {
			t.Errorf("ParseNote(%q) = %+v, want %+v", text, got, n)
		}
		if strings.ContainsAny(text, "\n\r\x00") {
			t.Errorf("note with control characters: %q", text)
		}
	})
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\nb")
	f.Add(strings.Repeat("\u00e9", 120))
	f.Fuzz(func(t *testing.T, text string) {
		got := desired.Printable(text)
		if len(got) > desired.MaxNote || strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Errorf("Printable(%q) = %q", text, got)
		}
		if again := desired.Printable(got); again != got {
			t.Errorf("Printable(%q) = %q", got, again)
		}
	})
}

func ExampleState_Reply() {
	for _, word := range []string{"ready", "drain", "maint", "25%", "hold"} {
		state, err := desired.ParseState(word)
		fmt.Printf("%s: %q %v\n", word, state.Reply(0), err)
	}
	// Output:
	// ready: "ready 100%\n" <nil>
	// drain: "drain 100%\n" <nil>
	// maint: "maint 100%\n" <nil>
	// 25%: "ready 25%\n" <nil>
	// hold: "hold\n" <nil>
}

// A typo under a key that never had a value does not hide the group's drain.
func TestResolveUnset(t *testing.T) {
	state := map[string]desired.State{"typo": desired.Unset, "other": desired.Unset, "canary": desired.Drain, "held": desired.Hold}
	lookup := func(key string) (desired.State, bool) { s, ok := state[key]; return s, ok }
	for question, want := range map[string]string{
		"typo":              "hold by typo",
		"typo none":         "hold by typo",
		"none typo other":   "hold by typo",
		"typo canary":       "drain by canary",
		"typo other canary": "drain by canary",
		"held canary":       "hold by held",
		"none":              "ready by ",
	} {
		if s, key := desired.Resolve(strings.Fields(question), lookup); s.String()+" by "+key != want {
			t.Errorf("Resolve(%q) = %v by %q, want %s", question, s, key, want)
		}
	}
}

func ExampleResolve() {
	state := map[string]desired.State{"canary": desired.Drain, "web/web-07": desired.Ready}
	lookup := func(key string) (desired.State, bool) { s, ok := state[key]; return s, ok }
	for _, question := range []string{"web/web-06 canary", "web/web-07 canary", "web/web-08"} {
		s, key := desired.Resolve(strings.Fields(question), lookup)
		fmt.Printf("%s: %s by %q\n", question, s, key)
	}
	// Output:
	// web/web-06 canary: drain by "canary"
	// web/web-07 canary: ready by "web/web-07"
	// web/web-08: ready by ""
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 keys", 1: "1 key", 2: "2 keys"} {
		if got := desired.Count(n, "key"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
