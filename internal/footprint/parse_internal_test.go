package footprint

import (
	"strings"
	"testing"
)

// What the kernel says of a mapping decides whether its pages may be dropped.
func TestDisposable(t *testing.T) {
	for _, c := range []struct {
		name, line, anonymous string
		want                  bool
	}{
		{"code", "00400000-00c6e000 r-xp 00000000 fe:00 1573 /usr/bin/x", "0", true},
		{"constants", "00c6e000-015d7000 r--p 0086e000 fe:00 1573 /usr/bin/x", "0", true},
		{"a path with spaces", "00c6e000-015d7000 r--p 0086e000 fe:00 1573 /opt/a b: c/x (deleted)", "0", true},
		{"variables", "015d7000-01672000 rw-p 011d7000 fe:00 1573 /usr/bin/x", "0", false},
		{"a breakpoint", "00400000-00c6e000 r-xp 00000000 fe:00 1573 /usr/bin/x", "4", false},
		{"relocated", "0059e000-005c9000 r--p 0019e000 fe:00 1573 /usr/bin/x", "172", false},
		{"relocated, and in part swapped out", "0059e000-005c9000 r--p 0019e000 fe:00 1573 /usr/bin/x", "0 kB\nSwap: 172", false},
		{"with no page in swap", "0059e000-005c9000 r--p 0019e000 fe:00 1573 /usr/bin/x", "0 kB\nSwap: 0", true},
		{"not known", "00400000-00c6e000 r-xp 00000000 fe:00 1573 /usr/bin/x", "", false},
		{"shared", "7f0000000000-7f0000001000 r--s 00000000 00:2c 12 /dev/shm/x", "0", false},
		{"no file", "c000000000-c000400000 r--p 00000000 00:00 0", "0", false},
		{"of the kernel", "7ffd5ffb5000-7ffd5ffb7000 r-xp 00000000 00:00 0 [vdso]", "0", false},
	} {
		text := c.line + "\nSize: 4 kB\nVmFlags: rd ex mr mw me sd\n"
		if c.anonymous != "" {
			text += "Anonymous: " + c.anonymous + " kB\n"
		}
		got, err := parse(strings.NewReader(text + "ffff0000-ffff1000 rw-p 00000000 00:00 0\nAnonymous: 8 kB\n"))
		if err != nil || len(got) != 2 {
			t.Errorf("%s: %d mappings, %v; want 2", c.name, len(got), err)
			continue
		}
		if got[0].disposable() != c.want {
			t.Errorf("%s: disposable %v, want %v: %+v", c.name, got[0].disposable(), c.want, got[0])
		}
	}
}

func TestAddresses(t *testing.T) {
	got, err := parse(strings.NewReader("7f0000000000-7f0000001000 r--p 00000000 fe:00 12 /x\n"))
	if err != nil || len(got) != 1 || got[0].start != 0x7f0000000000 || got[0].end != 0x7f0000001000 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, line := range []string{"a b c d e", "7f00-8000 r-- 0 fe:00 12 /x", "Size - - - -"} {
		if got, err := parse(strings.NewReader(line + "\n")); err == nil {
			t.Errorf("%q: %+v, want an error", line, got)
		}
	}
}

// FuzzParse: of whatever text, only what is known to be of a file is disposable.
func FuzzParse(f *testing.F) {
	f.Add("00400000-00c6e000 r-xp 00000000 fe:00 1573 /x\nAnonymous: 0 kB\n")
	f.Add("00400000-00c6e000 r--p 00000000 00:00 0\nAnonymous: 0 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		mappings, _ := parse(strings.NewReader(text))
		for _, m := range mappings {
			if m.disposable() && !strings.Contains(text, "Anonymous:") {
				t.Errorf("%+v is disposable, and nothing says that it is the file's: %q", m, text)
			}
		}
	})
}
