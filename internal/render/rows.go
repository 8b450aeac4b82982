package render

import (
	"slices"
	"strings"

	dep "github.com/hashicorp/consul-template/dependency"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
	"hadrain/internal/statefile"
)

// rows turns the pairs of the state prefix into rows and skipped keys. What a
// rejected value keeps is looked up in last, the rows before, sorted by key.
func rows(root string, pairs []*dep.KeyPair, last []desired.Row) ([]desired.Row, []statefile.Skipped) {
	prefix, sentinel := kv.StatePrefix(root), kv.SentinelKey(root)
	made := make([]desired.Row, 0, len(pairs))
	var skipped []statefile.Skipped
	for _, p := range pairs {
		// Not p.Key, from which the library cut leading slashes: "a" and "/a"
		// would be one.
		key := strings.TrimPrefix(p.Path, prefix)
		if p.Path == sentinel || key == "" || strings.HasSuffix(key, "/") {
			continue
		}
		if err := desired.CheckKey(key); err != nil {
			skipped = append(skipped, statefile.Skipped{Key: key[:min(len(key), desired.MaxKey)], Reason: err.Error()})
			continue
		}
		before, known := lookup(last, key)
		made = append(made, desired.Accept(key, p.Value, before, known))
	}
	// Consul sorts already; sorting again costs one pass.
	slices.SortFunc(made, func(a, b desired.Row) int { return strings.Compare(a.Key, b.Key) })
	return made, skipped
}

func lookup(rows []desired.Row, key string) (desired.Row, bool) {
	i, ok := slices.BinarySearchFunc(rows, key, func(r desired.Row, key string) int { return strings.Compare(r.Key, key) })
	if !ok {
		return desired.Row{}, false
	}
	return rows[i], true
}

// rejected counts the rows whose value was rejected.
func rejected(rows []desired.Row) (n int) {
	for _, row := range rows {
		if row.Rejected != "" {
			n++
		}
	}
	return n
}
