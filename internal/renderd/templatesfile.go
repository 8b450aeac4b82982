package renderd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v2"

	"hadrain/internal/render"
	"hadrain/internal/statefile"
)

// A file of --templates:
//
//	templates:
//	  - source: /etc/hadrain/upstream.conf.tmpl
//	    destination: /etc/nginx/conf.d/upstream.conf
//	    command: nginx -t && nginx -s reload
//	    timeout: 30s
//	    allow: [env, file]
type templatesFile struct {
	Templates []entry `yaml:"templates"`
}

// entry is a template: source and destination must be there.
type entry struct {
	Source      string        `yaml:"source"`
	Destination string        `yaml:"destination"`
	Command     string        `yaml:"command"`
	Timeout     time.Duration `yaml:"timeout"`
	Allow       []string      `yaml:"allow"`
}

// maxList is the greatest size of such a file, in bytes.
const maxList = 1 << 20

// readTemplates reads the file at path. An error names it and, as far as YAML
// knows it, the line.
func readTemplates(path string) ([]render.Template, error) {
	data, err := statefile.ReadRegular(path, maxList)
	if err != nil {
		return nil, fmt.Errorf("reading templates: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.SetStrict(true)
	var content templatesFile
	if err := decoder.Decode(&content); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlError(path, err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading templates from %s: want one document, not several", path)
	}
	if len(content.Templates) == 0 {
		return nil, fmt.Errorf("reading templates from %s: there are none in its list", path)
	}
	made := make([]render.Template, len(content.Templates))
	for i, e := range content.Templates {
		if e.Source == "" || e.Destination == "" {
			return nil, fmt.Errorf("reading templates from %s: template %d: want source and destination", path, i+1)
		}
		if e.Timeout != 0 && e.Timeout.Abs() < time.Millisecond {
			return nil, fmt.Errorf("reading templates from %s: template %d: timeout %s: want a number with a unit, such as 30s", path, i+1, e.Timeout)
		}
		made[i] = render.Template(e)
	}
	return made, nil
}

var (
	yamlLine    = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)
	yamlUnknown = regexp.MustCompile(`^field (.+) not found in type .*`)
	yamlInto    = regexp.MustCompile(` into (\[\])?renderd\.\w+$`)
	yamlTwice   = regexp.MustCompile(`^field (.+) already set in type .*`)
)

// yamlError puts the file's name where the library has "line 3: ", and says
// keys instead of fields of Go.
func yamlError(path string, err error) error {
	texts := []string{err.Error()}
	if several, ok := errors.AsType[*yaml.TypeError](err); ok {
		texts = several.Errors
	}
	for i, text := range texts {
		place, rest := path+": ", text
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			place, rest = path+":"+m[1]+": ", text[len(m[0]):]
		}
		rest = yamlInto.ReplaceAllString(rest, "; want the key templates with a list")
		rest = yamlUnknown.ReplaceAllString(rest, "unknown key $1")
		texts[i] = place + yamlTwice.ReplaceAllString(rest, "key $1 is there twice")
	}
	return fmt.Errorf("reading templates: %s", strings.Join(texts, "; "))
}
