package cli

import (
	"bytes"
	"strings"
	"testing"

	"hadrain/internal/desired"
)

func TestSelectors(t *testing.T) {
	rows := []string{"api/web-b-01", "web/web-b-01", "web/web-b-02", "web/web-c-01"}
	for operands, want := range map[string]string{
		"web/web-b-01":              "web/web-b-01",
		"@web/web-b-01":             "web/web-b-01",
		"canary":                    "canary",
		"@canary":                   "canary",
		"@web*":                     "web*", // a key of this very name
		"web/*":                     "web/web-b-01 web/web-b-02 web/web-c-01",
		"*/web-b-01":                "api/web-b-01 web/web-b-01",
		"web/web-[bc]-01":           "web/web-b-01 web/web-c-01",
		"web/web-?-02":              "web/web-b-02",
		"web*":                      "", // no crossing of the slash
		"*":                         "",
		"web/nope-*":                "",
		"web/web-b-02 web/* canary": "web/web-b-02 web/web-b-01 web/web-c-01 canary",
	} {
		sels, err := parseSelectors(strings.Fields(operands))
		if err != nil {
			t.Errorf("%s: %v", operands, err)
			continue
		}
		keys, err := selectKeys(sels, rows, false)
		if got := strings.Join(keys, " "); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", operands, got, err, want)
		}
		if _, err := selectKeys(sels, rows, true); err != nil {
			t.Errorf("%s with --allow-empty: %v", operands, err)
		}
	}
}

func TestSameOwner(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"alice@a", "alice@a", true},
		{"alice@a", "alice@b", true},
		{"alice", "alice@b", true},
		{"alice@a", "bob@a", false},
		{"root@a", "root@a", true},
		{"root@a", "root@b", false},
		{"", "alice@a", false},
	} {
		if got := sameOwner(tc.a, tc.b); got != tc.want {
			t.Errorf("sameOwner(%q, %q) = %t", tc.a, tc.b, got)
		}
	}
}

// Which state ends which: what somebody else took out is not put back, and
// what they hold is not touched.
func TestUndoes(t *testing.T) {
	half, err := desired.Weight(50)
	if err != nil {
		t.Fatal(err)
	}
	wants := map[string]want{
		"ready": {state: desired.Ready}, "drain": {state: desired.Drain}, "maint": {state: desired.Maint},
		"hold": {state: desired.Hold}, "50%": {state: half}, "clear": {delete: true},
	}
	for from, ends := range map[desired.State]string{
		desired.Ready: "",
		desired.Drain: "ready 50% clear hold",
		desired.Maint: "ready 50% clear hold",
		half:          "ready 50% clear hold",
		desired.Hold:  "ready 50% clear drain maint",
	} {
		for name, w := range wants {
			if got, want := undoes(from, w), strings.Contains(ends, name); got != want {
				t.Errorf("%s after %v ends it: %t, want %t", name, from, got, want)
			}
		}
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	table := &table{}
	table.add("KEY", "STATE", "WHY")
	table.add("café", "drain", "-")
	table.add("a", "ready", "because")
	if err := table.write(&b, func(cell string) string { return strings.ReplaceAll(cell, "drain", "\x1b[33mdrain\x1b[0m") }); err != nil {
		t.Fatal(err)
	}
	want := "KEY   STATE  WHY\ncafé  \x1b[33mdrain\x1b[0m  -\na     ready  because\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestPaint(t *testing.T) {
	if got := paint("maint"); got != "\x1b[31mmaint\x1b[0m" {
		t.Errorf("paint(maint) = %q", got)
	}
	if got := paint("web/maint"); got != "web/maint" {
		t.Errorf("paint(web/maint) = %q", got)
	}
	if got := painter(&bytes.Buffer{})("maint"); got != "maint" {
		t.Errorf("not a terminal: %q", got)
	}
}

func TestResponderURLsOnce(t *testing.T) {
	for list, want := range map[string]int{
		"http://lb-1 http://LB-1:80/ HTTP://ops:x@lb-1//":       1,
		"https://lb-1 https://lb-1:443":                         1,
		"http://[::1]:9779 http://[::1]:9779/":                  1,
		"http://lb-1 https://lb-1 http://lb-1:81 http://lb-1/x": 4,
	} {
		if urls, err := responderURLs(strings.Fields(list)); err != nil || len(urls) != want {
			t.Errorf("%s: %v, %v, want %d", list, urls, err, want)
		}
	}
}
