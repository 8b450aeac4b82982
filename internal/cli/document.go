package cli

import (
	"slices"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
)

// schema is the version of the documents that -o json prints. Fields are only
// ever added.
const schema = 1

// changeDocument is what -o json prints for the verbs that write states.
type changeDocument struct {
	Schema   int           `json:"schema"`
	Verb     string        `json:"verb"`
	Consul   string        `json:"consul"` // address, without credentials
	Root     string        `json:"root"`   // KV root
	ID       string        `json:"id"`     // of the sentinel
	By       string        `json:"by"`
	Reason   string        `json:"reason,omitempty"`
	At       time.Time     `json:"at"`
	Until    time.Time     `json:"until,omitzero"`
	DryRun   bool          `json:"dry_run"`
	Applied  bool          `json:"applied"`         // something was written
	Index    uint64        `json:"index,omitempty"` // Consul's, of the write
	Changes  []changeOfKey `json:"changes"`         // every key that was named, changed or not
	Warnings []string      `json:"warnings"`
	Notes    []string      `json:"notes"`
}

// changeOfKey is one key in a [changeDocument].
type changeOfKey struct {
	Key     string   `json:"key"`
	From    *string  `json:"from"`    // the raw value before; null: none
	To      *string  `json:"to"`      // the raw value after; null: none
	State   *string  `json:"state"`   // in To; null: none, or rejected
	Changed bool     `json:"changed"` // false: it was already as wanted
	Servers []string `json:"servers"` // known rows that it decides for
	Masked  []string `json:"masked"`  // known rows that send it, but another key of theirs wins
}

func (p *plan) document(a *app, state *kv.State, rows fleet) changeDocument {
	doc := changeDocument{
		Schema: schema, Verb: p.want.verb, Consul: a.consul.Shown(), Root: a.root, ID: state.ID,
		By: p.by, Reason: a.reason, At: p.now.Truncate(time.Second), Until: p.want.until,
		Changes: []changeOfKey{}, Warnings: list(slices.Concat(p.doubts, p.unasked(rows))), Notes: list(p.advice(rows, state)),
	}
	for _, s := range p.steps {
		doc.Changes = append(doc.Changes, s.document(p.want))
	}
	return doc
}

func (s *step) document(w want) changeOfKey {
	c := changeOfKey{Key: s.key, Changed: s.changes, Servers: list(s.servers), Masked: list(s.masked)}
	if s.from.exists {
		c.From = &s.from.raw
	}
	switch {
	case !s.changes:
		c.To = c.From
	case !w.delete:
		c.To = &s.value
	}
	if c.To != nil {
		if value, err := desired.ParseValue(*c.To); err == nil {
			word := value.State.String()
			c.State = &word
		}
	}
	return c
}

// list makes null an empty list.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
