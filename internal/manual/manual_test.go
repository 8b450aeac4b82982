package manual_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"hadrain/internal/manual"
	"hadrain/internal/testpeer"
)

func pages() map[string]string {
	build := manual.Build{Version: "1.2.3", Date: time.Unix(1796068930, 0)}
	all := map[string]string{}
	for _, program := range manual.Programs() {
		for _, page := range program.Pages(build) {
			all[page.Name] = string(page.Content)
		}
	}
	return all
}

func TestEveryCommandHasAPage(t *testing.T) {
	all := pages()
	for _, name := range []string{"hadrain.1", "hadrain-drain.1", "hadrain-status.1", "hadrain-render.8", "hadrain-responder.8"} {
		page, ok := all[name]
		if !ok {
			t.Errorf("no page %s", name)
			continue
		}
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENT", "FILES", "EXIT STATUS", "SEE ALSO"} {
			if !strings.Contains(page, ".SH \""+section+"\"\n") {
				t.Errorf("%s has no section %s", name, section)
			}
		}
	}
	for name := range all {
		if strings.Contains(name, "completion") || strings.Contains(name, "help") {
			t.Errorf("page %s of a generated command", name)
		}
	}
}

// What groff cannot read is a hole in a page that nobody looks at until they
// need it.
func TestPagesRenderWithoutWarnings(t *testing.T) {
	groff := testpeer.Need(t, "groff")
	for name, page := range pages() {
		cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
		cmd.Stdin = strings.NewReader(page)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff on %s: %v\n%s", name, err, out)
		}
	}
}

// A page must show what it was made from, whatever that holds: the same words
// in the same order, with every hyphen and quote as it was typed.
func TestRenderedText(t *testing.T) {
	groff := testpeer.Need(t, "groff")
	const long = ".dotted first, then 'quotes' and `ticks`, C:\\path, --flag, ~/x^y \"z\", 80 % … done.\n  'indented'  --as-is\n.TH evil"
	program := manual.Program{Command: &cobra.Command{Use: "x FILE", Short: "Do x", Long: long, Run: func(*cobra.Command, []string) {}}, Section: 1}
	page := program.Pages(manual.Build{Version: "1", Date: time.Unix(0, 0)})[0]
	cmd := exec.Command(groff, "-man", "-Tutf8", "-P-cbou", "-rLL=200n")
	cmd.Stdin = bytes.NewReader(page.Content)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	// A sentence that ends its line is followed by two spaces, so words count.
	got := strings.Fields(string(out))
	want := strings.Fields(long)
	at := slices.Index(got, want[0])
	if at < 0 || at+len(want) > len(got) || !slices.Equal(got[at:at+len(want)], want) {
		t.Errorf("the page does not show the text it was made from:\n%s", out)
	}
	if !strings.Contains(string(out), "'indented'  --as-is\n") {
		t.Errorf("an indented line was filled:\n%s", out)
	}
}
