package render

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	gotemplate "text/template"

	dep "github.com/hashicorp/consul-template/dependency"
	ctemplate "github.com/hashicorp/consul-template/template"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
	"hadrain/internal/statefile"
)

// A Template is a further file that render makes of the state.
type Template struct {
	Source      string // path of the template, in the language of consul-template
	Destination string // path of the file
	Command     string // run by sh -c after the file was replaced; empty: none
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

// denied are the functions of consul-template that reach outside of the state:
// files, the environment, programs, Vault and Nomad. A * stands for anything.
var denied = []string{
	"file", "writeToFile", "plugin", "env", "mustEnv", "envOrDefault", "sockaddr",
	"secret", "secrets", "pkiCert", "nomad*", "spew_*",
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
}

// readProgram reads the template at path and checks that it can be parsed. The
// error names the file and the line.
func readProgram(path, root string) (*program, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a template: %w", err)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("reading the template %s: it is empty", path)
	}
	p := &program{source: path, text: string(text), root: root}
	// The library parses only when it executes. What fails because there are no
	// keys yet is no mistake of the template.
	_, err = p.execute(&snapshot{file: &statefile.File{Root: root}}, "")
	if err != nil && (strings.HasPrefix(err.Error(), "parse: ") || strings.Contains(err.Error(), "function is disabled")) {
		return nil, p.located(err)
	}
	return p, nil
}

// execute returns the output for the state of s. current is what the file says
// so far.
func (p *program) execute(s *snapshot, current string) ([]byte, error) {
	t, err := ctemplate.NewTemplate(&ctemplate.NewTemplateInput{
		Contents:         p.text,
		FunctionDenylist: denied,
		ExtFuncMap: gotemplate.FuncMap{
			"prefix":  func() string { return kv.StatePrefix(p.root) },
			"desired": func(keys ...string) (string, error) { return resolve(s.file, keys) },
			"current": func(start string) string { return lineStarting(current, start) },
		},
	})
	if err != nil {
		return nil, err
	}
	brain := ctemplate.NewBrain()
	query, err := dep.NewKVListQuery(kv.StatePrefix(p.root))
	if err != nil {
		return nil, err
	}
	brain.Remember(query, s.pairs)
	result, err := t.Execute(&ctemplate.ExecuteInput{Brain: brain})
	if err != nil {
		return nil, err
	}
	if missing := result.Missing.List(); len(missing) > 0 {
		return nil, fmt.Errorf("it asks for %s, but only the keys under %s are read", missing[0], kv.StatePrefix(p.root))
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
