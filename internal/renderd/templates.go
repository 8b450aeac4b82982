package renderd

import (
	"errors"
	"strings"

	"hadrain/internal/render"
)

// templates is the value of --template: one template for each time that it is
// given, or for each line of its variable. An empty variable means none.
type templates []render.Template

// String implements [github.com/spf13/pflag.Value]; there is no default to show.
func (*templates) String() string { return "" }

// Type implements [github.com/spf13/pflag.Value]: it is what --help shows.
func (*templates) Type() string { return "SRC:DEST[:COMMAND]" }

// Set implements [github.com/spf13/pflag.Value].
func (t *templates) Set(text string) error {
	var err error
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		parsed, bad := render.ParseTemplate(line)
		if bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		*t = append(*t, parsed)
	}
	return err
}
