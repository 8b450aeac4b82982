package cli

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
	"hadrain/internal/statusjson"
)

// statusDocument is what -o json prints for status.
type statusDocument struct {
	Schema     int               `json:"schema"`
	Consul     string            `json:"consul"` // address, without credentials
	Root       string            `json:"root"`
	At         time.Time         `json:"at"`
	ID         string            `json:"id,omitempty"`    // of the sentinel
	Index      uint64            `json:"index,omitempty"` // Consul's, of the state prefix
	Error      string            `json:"error,omitempty"` // why there are no keys; the exit status is 1 then
	Keys       []keyStatus       `json:"keys"`            // in Consul, by name
	Rows       []rowStatus       `json:"rows"`            // that HAProxy asks for, by responder and name
	Responders []responderStatus `json:"responders"`
	Warnings   []string          `json:"warnings"` // load balancers that do not follow, globs that may have missed rows

	named bool // operands chose the keys and rows
}

// keyStatus is one key. A key that was named but has no value has a null value.
type keyStatus struct {
	Key      string    `json:"key"`
	Value    *string   `json:"value"`              // raw
	State    *string   `json:"state"`              // null: no value, rejected or skipped
	Rejected string    `json:"rejected,omitempty"` // why the value is no state; load balancers keep the last one
	Skipped  string    `json:"skipped,omitempty"`  // why no load balancer follows this key, whatever its value
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	Overdue  bool      `json:"overdue"` // until is over
	Reason   string    `json:"reason,omitempty"`
	Masks    []string  `json:"masks"` // groups of the row that have a value, which it hides

	index  uint64
	unsaid string // what the row of a key without a value does not say
}

// rowStatus is one row as one responder reports it.
type rowStatus struct {
	Responder string `json:"responder"` // URL
	Host      string `json:"host"`
	statusjson.Row
}

// responderStatus is one responder that was asked.
type responderStatus struct {
	URL   string            `json:"url"`
	Host  string            `json:"host,omitempty"`
	Error string            `json:"error,omitempty"` // why it said nothing
	State *statusjson.State `json:"state,omitempty"`
}

func statusCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [SEL...]", Short: "What is wanted, and what load balancers are told", Long: statusLong, Example: statusExample,
		ValidArgsFunction: completeKeys,
	}
	allowEmpty := cmd.Flags().Bool("allow-empty", false, "accept a glob that matches nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.status(cmd, args, *allowEmpty) }
	return cmd
}

func (a *app) status(cmd *cobra.Command, args []string, allowEmpty bool) error {
	if err := a.check(); err != nil {
		return err
	}
	sels, err := parseSelectors(args)
	if err != nil {
		return err
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	state, readErr := a.read(cmd.Context(), store)
	if readErr != nil {
		state = &kv.State{} // what load balancers are told is worth the more
	}
	rows := a.askResponders(cmd.Context())
	doc, err := a.statusDocument(sels, state, rows, allowEmpty || readErr != nil)
	if err != nil {
		progress{cmd.ErrOrStderr()}.warnings(doc.Warnings)
		return err
	}
	if readErr != nil {
		doc.Error = readErr.Error()
	}
	if a.json() {
		err = printJSON(cmd.OutOrStdout(), doc)
	} else {
		err = a.showStatus(cmd, doc)
	}
	if readErr != nil {
		return readErr
	}
	return err
}

func (a *app) statusDocument(sels []selector, state *kv.State, rows fleet, allowEmpty bool) (statusDocument, error) {
	doc := statusDocument{
		Schema: schema, Consul: a.consul.Shown(), Root: a.root, At: time.Now().UTC().Truncate(time.Second),
		ID: state.ID, Index: state.Index, Keys: []keyStatus{}, Rows: []rowStatus{}, Responders: []responderStatus{},
		Warnings: list(append(rows.globs(sels), rows.lags(state, a.root)...)), named: len(sels) > 0,
	}
	// It also refuses globs that match nothing.
	named, err := selectKeys(sels, rows.known(state), allowEmpty)
	if err != nil {
		return doc, err
	}
	if len(sels) == 0 {
		for key := range state.Entries {
			named = append(named, key)
		}
		slices.Sort(named)
	}
	for _, key := range named {
		k := statusOf(key, state, doc.At)
		k.Masks = list(masks(key, state, rows))
		if k.Value == nil {
			k.unsaid = rows.unasked(key)
		}
		doc.Keys = append(doc.Keys, k)
	}
	shown := map[string]bool{}
	for _, key := range named {
		shown[key] = true
	}
	for _, r := range rows.reports {
		doc.addReport(r, func(row statusjson.Row) bool {
			return len(sels) == 0 || slices.ContainsFunc(row.Keys, func(key string) bool { return shown[key] })
		})
	}
	return doc, nil
}

func (doc *statusDocument) addReport(r report, shown func(statusjson.Row) bool) {
	if r.err != nil {
		doc.Responders = append(doc.Responders, responderStatus{URL: r.url, Error: r.err.Error()})
		return
	}
	doc.Responders = append(doc.Responders, responderStatus{URL: r.url, Host: r.doc.Host, State: &r.doc.State})
	for _, row := range r.doc.Rows {
		if shown(row) {
			doc.Rows = append(doc.Rows, rowStatus{Responder: r.url, Host: r.doc.Host, Row: row})
		}
	}
}

// statusOf reads one key.
func statusOf(key string, state *kv.State, now time.Time) keyStatus {
	c := currentOf(state, key)
	k := keyStatus{Key: key, Masks: []string{}, index: state.Entries[key].ModifyIndex}
	if !c.exists {
		return k
	}
	k.Value = &c.raw
	if err := desired.CheckKey(key); err != nil {
		k.Skipped = err.Error()
		return k
	}
	if c.rejected != nil {
		k.Rejected = desired.Printable(c.rejected.Error())
		return k
	}
	word := c.value.State.String()
	k.State = &word
	k.By, k.At, k.Until, k.Reason = c.note.By, c.note.At, c.note.Until, c.note.Reason
	k.Overdue = !k.Until.IsZero() && now.After(k.Until)
	return k
}

// masks returns the groups of a row whose values the row's own value hides.
func masks(key string, state *kv.State, rows fleet) []string {
	if !rows.decides(currentOf(state, key), key) {
		return nil
	}
	var groups []string
	keys := rows.rows[key]
	for _, group := range keys[min(1, len(keys)):] {
		if _, ok := state.Entries[group]; ok {
			groups = append(groups, group)
		}
	}
	return groups
}
