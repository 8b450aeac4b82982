// Package manual makes man pages from command lines: from the texts, flags and
// examples that --help shows, so that both say the same, and from a [Program],
// which knows what a command line does not, such as its files.
package manual

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hadrain/internal/cmdline"
)

// A Program is one program and what its pages say besides its help.
type Program struct {
	Command *cobra.Command
	Section int // of the manual: 1 for people, 8 for daemons

	Environment []Entry // variables that are read and stand for no flag
	Files       []Entry
	Exit        []Entry  // exit statuses, for every verb
	SeeAlso     []string // pages such as "hadrain-render(8)"
}

// An Entry is a name, such as the path of a file, and what is to be said of it.
type Entry struct{ Name, Text string }

// A Page is one man page.
type Page struct {
	Name    string // of the file, such as "hadrain-drain.1"
	Content []byte
}

// Build says what goes into the head and the foot of each page.
type Build struct {
	Version string
	Date    time.Time // the day is shown
}

// Pages returns the page of the program and one for each of its verbs, sorted
// by the order of the commands. Hidden commands, and the generated ones for
// completion and help, have none.
func (p Program) Pages(b Build) []Page {
	p.Command.InitDefaultHelpFlag()
	pages := []Page{p.page(p.Command, b)}
	for _, verb := range p.verbs() {
		verb.InitDefaultHelpFlag()
		pages = append(pages, p.page(verb, b))
	}
	return pages
}

func (p Program) verbs() []*cobra.Command {
	var verbs []*cobra.Command
	for _, c := range p.Command.Commands() {
		if c.IsAvailableCommand() && c.Name() != "completion" && c.Name() != "help" {
			verbs = append(verbs, c)
		}
	}
	return verbs
}

func (p Program) page(c *cobra.Command, b Build) Page {
	name := pageName(c)
	r := &roff{}
	r.macro("TH", strings.ToUpper(name), fmt.Sprint(p.Section), b.Date.UTC().Format(time.DateOnly), "hadrain "+b.Version, "Hadrain")
	r.macro("SH", "NAME")
	r.line(escape(name) + ` \- ` + escape(lowerFirst(c.Short)))
	r.macro("SH", "SYNOPSIS")
	p.synopsis(r, c)
	r.macro("SH", "DESCRIPTION")
	r.text(description(c))
	if c == p.Command {
		p.commands(r)
	}
	options(r, "OPTIONS", c.NonInheritedFlags())
	options(r, "GLOBAL OPTIONS", cmdline.Globals(c))
	p.environment(r, c)
	entries(r, "FILES", p.Files)
	entries(r, "EXIT STATUS", p.Exit)
	if c.Example != "" {
		r.macro("SH", "EXAMPLES")
		r.text(c.Example)
	}
	p.seeAlso(r, c)
	return Page{Name: fmt.Sprintf("%s.%d", name, p.Section), Content: []byte(r.String())}
}

// description is the long text without the paragraph on exit statuses, which
// have a section of their own.
func description(c *cobra.Command) string {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	paragraphs := slices.DeleteFunc(strings.Split(text, "\n\n"), func(paragraph string) bool {
		return strings.HasPrefix(paragraph, "Exit status:")
	})
	return strings.Join(paragraphs, "\n\n")
}

func (p Program) synopsis(r *roff, c *cobra.Command) {
	operands := strings.TrimPrefix(c.Use, c.Name())
	if c == p.Command && len(p.verbs()) > 0 {
		operands = " COMMAND"
	}
	r.line(bold(c.CommandPath()) + escape(operands) + " [" + italic("options") + "]")
}

func (p Program) commands(r *roff) {
	verbs := p.verbs()
	if len(verbs) == 0 {
		return
	}
	r.macro("SH", "COMMANDS")
	for _, verb := range verbs {
		r.item(bold(pageName(verb))+fmt.Sprintf("(%d)", p.Section), verb.Short)
	}
}

// environment lists the variables of c's own flags, and of what is no flag.
func (p Program) environment(r *roff, c *cobra.Command) {
	r.macro("SH", "ENVIRONMENT")
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if hasVariable(f) {
			r.item(bold(cmdline.Variable(f.Name)), "The value of --"+f.Name+", if that is not given.")
		}
	})
	if c != p.Command {
		r.macro("PP")
		r.line("Those of the global options, and of Consul, are listed in")
		r.line(bold(p.Command.Name()) + fmt.Sprintf("(%d).", p.Section))
		return
	}
	for _, e := range p.Environment {
		r.item(bold(e.Name), e.Text)
	}
}

func (p Program) seeAlso(r *roff, c *cobra.Command) {
	pages := slices.Clone(p.SeeAlso)
	if c != p.Command {
		pages = slices.Insert(pages, 0, fmt.Sprintf("%s(%d)", p.Command.Name(), p.Section))
	}
	r.macro("SH", "SEE ALSO")
	for i, page := range pages {
		name, section, _ := strings.Cut(page, "(")
		text := bold(name) + "(" + section
		if i < len(pages)-1 {
			text += ","
		}
		r.line(text)
	}
}

func options(r *roff, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	r.macro("SH", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			option(r, f)
		}
	})
}

func option(r *roff, f *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(f)
	tag := bold("--" + f.Name)
	if f.Shorthand != "" {
		tag = bold("-"+f.Shorthand) + ", " + tag
	}
	if value != "" {
		tag += " " + italic(value)
	}
	lines := []string{upperFirst(usage) + "."}
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
	default:
		lines = append(lines, "Default: "+strings.Trim(f.DefValue, "[]"))
	}
	r.item(tag, lines...)
}

func entries(r *roff, title string, list []Entry) {
	if len(list) == 0 {
		return
	}
	r.macro("SH", title)
	for _, e := range list {
		r.item(bold(e.Name), e.Text)
	}
}

// hasVariable reports whether package cmdline reads f from the environment.
func hasVariable(f *pflag.Flag) bool { return !f.Hidden && f.Name != "help" && f.Name != "version" }

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func lowerFirst(s string) string {
	// "HTTP" and "HAProxy" stay as they are.
	if len(s) < 2 || s[1] < 'a' || s[1] > 'z' {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
