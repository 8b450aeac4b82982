package agentcheck_test

import (
	"slices"
	"strings"
	"testing"

	"hadrain/internal/agentcheck"
	"hadrain/internal/desired"
)

func keysOf(q agentcheck.Question) []string {
	var keys []string
	for key := q.Next(); len(key) > 0; key = q.Next() {
		keys = append(keys, string(key))
	}
	return keys
}

func TestParseQuestion(t *testing.T) {
	const up, noWeight = desired.Up, desired.NoWeight
	for _, tc := range []struct {
		line string
		base desired.Form
		form desired.Form
		keys string // empty: refused
	}{
		{"web/a canary", 0, 0, "web/a canary"},
		{" \tweb/a \t  canary\r", 0, 0, "web/a canary"},
		{"web/a", up, up, "web/a"},
		{"+up web/a", 0, up, "web/a"},
		{"-up web/a", up, 0, "web/a"},
		{"-weight web/a", up, up | noWeight, "web/a"},
		{"-weight +up web/a canary", 0, up | noWeight, "web/a canary"},
		{"+up -up web/a", 0, 0, "web/a"},
		{strings.Repeat("k ", agentcheck.MaxKeys), 0, 0, strings.TrimSpace(strings.Repeat("k ", agentcheck.MaxKeys))},
		{strings.Repeat("k ", agentcheck.MaxKeys+1), 0, 0, ""},
		{strings.Repeat("k", agentcheck.MaxQuestion+1), 0, 0, ""},
		{"", 0, 0, ""},
		{" \t\r", 0, 0, ""},
		{"+up", 0, up, ""},
		{"+down web/a", 0, 0, ""},
		{"-wieght web/a", 0, 0, ""},
		{"web/a +up", 0, 0, ""},
		{"+ web/a", 0, 0, ""},
	} {
		q, ok := agentcheck.ParseQuestion([]byte(tc.line), tc.base)
		if ok != (tc.keys != "") {
			t.Errorf("ParseQuestion(%q) = %v, want %v", tc.line, ok, !ok)
		}
		if !ok {
			continue
		}
		if keys := strings.Join(keysOf(q), " "); keys != tc.keys || q.Form != tc.form {
			t.Errorf("ParseQuestion(%q) = form %b, keys %q, want form %b, keys %q", tc.line, q.Form, keys, tc.form, tc.keys)
		}
	}
}

// parse is the reference: what ParseQuestion means, put simply.
func parse(line string, form desired.Form) (desired.Form, []string, bool) {
	words := strings.Fields(line)
	for len(words) > 0 && strings.ContainsAny(words[0][:1], "+-") {
		switch words[0] {
		case "+up":
			form |= desired.Up
		case "-up":
			form &^= desired.Up
		case "-weight":
			form |= desired.NoWeight
		default:
			return 0, nil, false
		}
		words = words[1:]
	}
	option := func(word string) bool { return word[0] == '+' || word[0] == '-' }
	ok := len(line) <= agentcheck.MaxQuestion && len(words) > 0 && len(words) <= agentcheck.MaxKeys &&
		!slices.ContainsFunc(words, option)
	return form, words, ok
}

func FuzzParseQuestion(f *testing.F) {
	for _, seed := range []string{
		"web/a canary", "web/x canary web/b", "held", "+up -weight web/a", "typo canary", "typo none", "none typo typo web/b", "-up", " \t ", "a\u00a0b\u2003c", "a\x85b\xff", "\xe2\x80", "k\x00k", "a +b",
		strings.Repeat("k ", 65), strings.Repeat("k", 4097),
	} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(desired.Up))
	}
	f.Fuzz(func(t *testing.T, line string, base uint8) {
		form, keys, ok := parse(line, desired.Form(base))
		q, got := agentcheck.ParseQuestion([]byte(line), desired.Form(base))
		if got != ok {
			t.Fatalf("ParseQuestion(%q) = %v, want %v", line, got, ok)
		}
		a := agentcheck.Respond([]byte(line), desired.Form(base), lookup)
		if !ok {
			if a.Reply != agentcheck.ReplyRefused {
				t.Fatalf("Respond(%q) = %q, want %q", line, a.Reply, agentcheck.ReplyRefused)
			}
			return
		}
		if gotKeys := keysOf(q); !slices.Equal(gotKeys, keys) || q.Form != form {
			t.Fatalf("ParseQuestion(%q) = form %b, keys %q, want form %b, keys %q", line, q.Form, gotKeys, form, keys)
		}
		state, _ := desired.Resolve(keys, func(key string) (desired.State, bool) { s, ok := states[key]; return s, ok })
		if want := state.Reply(form); a.Reply != want {
			t.Fatalf("Respond(%q) = %q, want %q", line, a.Reply, want)
		}
	})
}
