package render

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	gotemplate "text/template"
	"time"

	dep "github.com/hashicorp/consul-template/dependency"
	ctemplate "github.com/hashicorp/consul-template/template"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
	"hadrain/internal/statefile"
)

// A Template is a further file that render makes of the state.
type Template struct {
	Source      string        // path of the template, in the language of consul-template
	Destination string        // path of the file, or of a link to it, which is followed once
	Command     string        // run by sh -c after the file was replaced; empty: none
	Timeout     time.Duration // most time that the template may take, and then Command; 0: [DefaultTimeout]
	Allow       []string      // functions that the template may use although they reach outside: env, envOrDefault, file, mustEnv, plugin, sockaddr, writeToFile
}

// ParseTemplate reads SRC:DEST[:COMMAND]. COMMAND may hold colons.
func ParseTemplate(text string) (Template, error) {
	source, rest, _ := strings.Cut(text, ":")
	destination, command, _ := strings.Cut(rest, ":")
	if source == "" || destination == "" {
		return Template{}, fmt.Errorf("template %q: want SRC:DEST or SRC:DEST:COMMAND", text)
	}
	return Template{Source: source, Destination: destination, Command: command}, nil
}

// A snapshot is what templates are executed with.
type snapshot struct {
	generation uint64
	file       *statefile.File
	pairs      []*dep.KeyPair
}

// program is a template that was read and checked.
type program struct {
	source, text string
	root         string
	allow        []string
}

// maxSource is the greatest size of a template and of a file that it reads, in
// bytes.
const maxSource = 64 << 20

// readProgram reads the template t and checks that it can be parsed and uses
// only functions that it may. The error names the file and the line.
func readProgram(t Template, root string) (*program, error) {
	text, err := statefile.ReadRegular(t.Source, maxSource)
	if err != nil {
		return nil, fmt.Errorf("reading a template: %w", err)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("reading the template %s: it is empty", t.Source)
	}
	// The library parses only when it executes, and so late is too late.
	if err := checkFunctions(t.Source, string(text), kv.StatePrefix(root), t.Allow); err != nil {
		return nil, err
	}
	return &program{source: t.Source, text: string(text), root: root, allow: t.Allow}, nil
}

// execute returns the output for the state of s. current is what the file says
// so far.
func (p *program) execute(s *snapshot, current string) ([]byte, error) {
	k := keys{prefix: kv.StatePrefix(p.root), pairs: s.pairs}
	functions := k.functions()
	maps.Copy(functions, extra(p.allow))
	maps.Copy(functions, gotemplate.FuncMap{
		"prefix":  func() string { return k.prefix },
		"desired": func(keys ...string) (string, error) { return resolve(s.file, keys) },
		"current": func(start string) string { return lineStarting(current, start) },
	})
	t, err := ctemplate.NewTemplate(&ctemplate.NewTemplateInput{
		Contents: p.text, FunctionDenylist: denied(p.allow), ExtFuncMap: functions,
	})
	if err != nil {
		return nil, err
	}
	result, err := t.Execute(&ctemplate.ExecuteInput{Brain: ctemplate.NewBrain()})
	if err != nil {
		return nil, err
	}
	// Nothing that is allowed asks; what did would wait for ever.
	if missing := result.Missing.List(); len(missing) > 0 {
		return nil, fmt.Errorf("it asks for %s, but only the keys under %s are read", missing[0], k.prefix)
	}
	return result.Output, nil
}

// resolve returns the word for the state of the first of keys that has one, as
// the responder answers. Each argument holds any number of keys, as agent-send
// does.
func resolve(f *statefile.File, args []string) (string, error) {
	keys := strings.Fields(strings.Join(args, " "))
	if len(keys) == 0 {
		return "", errors.New("desired: want at least one key")
	}
	state, _ := desired.Resolve(keys, func(key string) (desired.State, bool) {
		row, ok := lookup(f.Rows, key)
		return row.State, ok
	})
	return state.String(), nil
}

// lineStarting returns the first line of text that starts with start, without
// white space around it; "" if there is none. It is how a template leaves a line
// as it is, which is what hold means.
func lineStarting(text, start string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, start) {
			return line
		}
	}
	return ""
}

// position is how the library names a place in a template without a name.
var position = regexp.MustCompile(`template: :(\d+)`)

// located puts the file's name into an error of the library.
func (p *program) located(err error) error {
	text := position.ReplaceAllString(err.Error(), p.source+":$1")
	if !strings.Contains(text, p.source) {
		text = p.source + ": " + text
	}
	return errors.New("template " + strings.TrimPrefix(strings.TrimPrefix(text, "parse: "), "execute: "))
}
