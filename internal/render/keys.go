package render

import (
	"fmt"
	"strings"
	gotemplate "text/template"

	dep "github.com/hashicorp/consul-template/dependency"
)

// keys are what was read, as templates see it.
type keys struct {
	prefix string // of all of them, with its slash
	pairs  []*dep.KeyPair
	byPath map[string]*dep.KeyPair // made when it is first needed
}

// functions replace those of consul-template that read keys. There each of them
// is a watch of its own; here all see the one answer that was accepted.
func (k *keys) functions() gotemplate.FuncMap {
	return gotemplate.FuncMap{
		"key": func(path string) (string, error) {
			value, _, err := k.get(path)
			return value, err
		},
		"keyExists": func(path string) (bool, error) {
			_, ok, err := k.get(path)
			return ok, err
		},
		"keyOrDefault": func(path, otherwise string) (string, error) {
			value, _, err := k.get(path)
			if value == "" {
				value = otherwise
			}
			return value, err
		},
		"ls":       func(path string) ([]*dep.KeyPair, error) { return k.list(path, false) },
		"tree":     func(path string) ([]*dep.KeyPair, error) { return k.list(path, true) },
		"safeLs":   func(path string) ([]*dep.KeyPair, error) { return some(path)(k.list(path, false)) },
		"safeTree": func(path string) ([]*dep.KeyPair, error) { return some(path)(k.list(path, true)) },
	}
}

// checkUnder returns an error if path, with or without a slash at its start,
// can have keys outside of prefix.
func checkUnder(path, prefix string) error {
	if !strings.HasPrefix(strings.TrimPrefix(path, "/"), prefix) {
		return fmt.Errorf("it asks for %q, but only the keys under %s are read", path, prefix)
	}
	return nil
}

func (k *keys) get(path string) (value string, ok bool, err error) {
	if err := checkUnder(path, k.prefix); err != nil {
		return "", false, err
	}
	if k.byPath == nil {
		k.byPath = make(map[string]*dep.KeyPair, len(k.pairs))
		for _, p := range k.pairs {
			k.byPath[p.Path] = p
		}
	}
	p, ok := k.byPath[strings.TrimPrefix(path, "/")]
	if !ok {
		return "", false, nil
	}
	return p.Value, true, nil
}

// list returns the pairs under path, with their Key relative to it: all of
// them, or those without a slash.
func (k *keys) list(path string, deep bool) ([]*dep.KeyPair, error) {
	if err := checkUnder(path, k.prefix); err != nil {
		return nil, err
	}
	path = strings.TrimPrefix(path, "/")
	var found []*dep.KeyPair
	for _, p := range k.pairs {
		rest, ok := strings.CutPrefix(p.Path, path)
		key := strings.TrimLeft(rest, "/")
		// Folders are no keys.
		if !ok || key == "" || strings.HasSuffix(key, "/") || !deep && strings.Contains(key, "/") {
			continue
		}
		if key != p.Key {
			relative := *p
			relative.Key = key
			p = &relative
		}
		found = append(found, p)
	}
	return found, nil
}

// some makes an error of nothing.
func some(path string) func([]*dep.KeyPair, error) ([]*dep.KeyPair, error) {
	return func(pairs []*dep.KeyPair, err error) ([]*dep.KeyPair, error) {
		if err == nil && len(pairs) == 0 {
			err = fmt.Errorf("there is no key under %q", path)
		}
		return pairs, err
	}
}
