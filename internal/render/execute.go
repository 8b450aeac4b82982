package render

import (
	"errors"
	"fmt"
	"slices"
	"text/template"
	"time"

	dep "github.com/hashicorp/consul-template/dependency"
	ctemplate "github.com/hashicorp/consul-template/template"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
	"hadrain/internal/statefile"
	"hadrain/templates"
)

// renderer makes state files of reads by the template.
type renderer struct {
	root, host string
	brain      *ctemplate.Brain
	watched    dep.Dependency // whose data the brain holds
}

// render makes the state file of read. last is the file before, nil if there
// was none; its rows are what rejected values keep. If nothing but the time of
// rendering differs from last, it returns last and no data.
func (r *renderer) render(read *kv.Read, last *statefile.File, now time.Time) (*statefile.File, []byte, error) {
	r.brain.Remember(r.watched, read.Pairs)
	defer r.brain.Forget(r.watched) // or they stay in memory
	f := &statefile.File{Head: statefile.Head{Root: r.root, ID: read.ID, Index: read.Index, Rendered: now.UTC().Truncate(time.Second), Host: r.host}}
	body, err := r.execute(f, last)
	if err != nil {
		return nil, nil, err
	}
	data := statefile.Seal(body)
	parsed, err := statefile.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the rendered state: %w", err)
	}
	if !same(parsed, f) {
		return nil, nil, errors.New("reading the rendered state: it does not say what was rendered")
	}
	if last != nil {
		f.Rendered = last.Rendered
		if same(f, last) {
			return last, nil, nil
		}
	}
	return parsed, data, nil
}

// execute fills f from the brain and returns the lines of the file.
func (r *renderer) execute(f, last *statefile.File) ([]byte, error) {
	var before []desired.Row
	if last != nil {
		before = last.Rows
	}
	t, err := ctemplate.NewTemplate(&ctemplate.NewTemplateInput{
		Contents:      templates.State,
		ErrMissingKey: true,
		ExtFuncMap: template.FuncMap{
			"prefix":  func() string { return kv.StatePrefix(r.root) },
			"skipped": statefile.SkippedLine,
			"state": func(pairs []*dep.KeyPair) *statefile.File {
				f.Rows, f.Skipped = rows(r.root, pairs, before)
				return f
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("reading the template of the state file: %w", err)
	}
	result, err := t.Execute(&ctemplate.ExecuteInput{Brain: r.brain})
	if err != nil {
		return nil, fmt.Errorf("executing the template of the state file: %w", err)
	}
	if n := result.Missing.Len(); n > 0 {
		return nil, fmt.Errorf("executing the template of the state file: it asks for %s that were not read", desired.Count(n, "thing"))
	}
	return result.Output, nil
}

// same reports whether two files say the same.
func same(a, b *statefile.File) bool {
	return a.Header() == b.Header() && slices.Equal(a.Rows, b.Rows) && slices.Equal(a.Skipped, b.Skipped)
}
