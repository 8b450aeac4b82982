package cli

import (
	"fmt"
	"path"
	"strings"

	"hadrain/internal/cmdline"
	"hadrain/internal/desired"
	"hadrain/internal/kv"
)

// A selector is one operand that names keys: a key (backend/server, a group, or
// @ and either), or a glob over the known rows.
type selector struct {
	text string // as typed
	key  string // "" for a glob
}

const globMeta = "*?["

// parseSelectors reads operands. It contacts nobody.
func parseSelectors(args []string) ([]selector, error) {
	sels := make([]selector, 0, len(args))
	for _, arg := range args {
		sel, err := parseSelector(arg)
		if err != nil {
			return nil, cmdline.Usage(err)
		}
		sels = append(sels, sel)
	}
	return sels, nil
}

func parseSelector(arg string) (selector, error) {
	key, literal := strings.CutPrefix(arg, "@")
	if err := desired.CheckKey(key); err != nil {
		return selector{}, fmt.Errorf("operand %q: %w; want backend/server, a group such as canary, or a glob such as 'web/*'", arg, err)
	}
	if key == kv.SentinelName {
		return selector{}, fmt.Errorf("operand %q: this is the sentinel, which only hadrain init writes", arg)
	}
	if literal || !strings.ContainsAny(key, globMeta) {
		return selector{text: arg, key: key}, nil
	}
	if _, err := path.Match(key, ""); err != nil {
		return selector{}, fmt.Errorf("operand %q: not a glob: a [ without its ]; for a key with this name write @%s", arg, arg)
	}
	return selector{text: arg}, nil
}

// matches reports whether the selector names the row or key. A glob matches
// rows alone, and its * and ? do not cross the slash between backend and server.
func (s selector) matches(key string) bool {
	if s.key != "" {
		return s.key == key
	}
	ok, _ := path.Match(s.text, key) // its syntax was checked
	return ok && strings.Contains(key, "/")
}

// selectKeys returns the keys that the selectors name: literal ones as they
// are, globs over rows. Each key comes once, in the order of the operands.
func selectKeys(sels []selector, rows []string, allowEmpty bool) ([]string, error) {
	var keys []string
	added := map[string]bool{}
	add := func(key string) {
		if !added[key] {
			added[key] = true
			keys = append(keys, key)
		}
	}
	for _, sel := range sels {
		if sel.key != "" {
			add(sel.key)
			continue
		}
		found := 0
		for _, row := range rows {
			if sel.matches(row) {
				add(row)
				found++
			}
		}
		if found == 0 && !allowEmpty {
			return nil, cmdline.Usage(emptyGlob(sel, len(rows)))
		}
	}
	return keys, nil
}

func emptyGlob(sel selector, rows int) error {
	hint := ""
	if !strings.Contains(sel.text, "/") {
		hint = fmt.Sprintf("; a row is backend/server, and * does not cross the slash: try '%s/*'", sel.text)
	}
	return fmt.Errorf("operand %q matches none of the known rows (%d)%s; --responder names who knows more, --allow-empty accepts it", sel.text, rows, hint)
}
