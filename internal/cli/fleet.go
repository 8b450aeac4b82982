package cli

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
	"hadrain/internal/statusjson"
)

// maxResponderWait is how long a responder may take: it answers from memory,
// and the commands for an emergency go on without it.
const maxResponderWait = 3 * time.Second

// report is what one responder said.
type report struct {
	url string // without user and password
	doc statusjson.Responder
	err error // why there is no document
}

// fleet is what is known of the rows that HAProxy asks for.
type fleet struct {
	reports []report
	rows    map[string][]string // row -> its keys in the order sent
	unset   map[string]bool     // keys whose only values were rejected: they hide no group
}

// askResponders asks all responders at the same time.
func (a *app) askResponders(ctx context.Context) fleet {
	ctx, cancel := context.WithTimeout(ctx, min(a.timeout, maxResponderWait))
	defer cancel()
	urls, _ := responderURLs(a.responders) // they were checked
	f := fleet{reports: make([]report, len(urls)), rows: map[string][]string{}, unset: map[string]bool{}}
	// Without the authority none can be asked by https: each says so, and what
	// does not need it goes on.
	client, err := daemonClient(a.responderCA)
	var wait sync.WaitGroup
	for i, base := range urls {
		f.reports[i].url, f.reports[i].err = shownURL(base), err
		if err == nil {
			wait.Go(func() { f.reports[i].err = fetchStatus(ctx, client, base, &f.reports[i].doc) })
		}
	}
	wait.Wait()
	for _, r := range f.reports {
		for _, bad := range r.doc.Rejected {
			f.unset[bad.Key] = desired.RejectedState(desired.Hold, bad.Reason) == desired.Unset
		}
		for _, row := range r.doc.Rows {
			if _, ok := f.rows[row.Row]; !ok {
				f.rows[row.Row] = row.Keys
			}
		}
	}
	return f
}

// answered is the number of responders that gave a report.
func (f *fleet) answered() int {
	n := 0
	for _, r := range f.reports {
		if r.err == nil {
			n++
		}
	}
	return n
}

// known returns the known rows, sorted: those that HAProxy asks for, and the
// row keys that have a value. What load balancers skip is no row: a glob that
// took it in could not be written.
func (f *fleet) known(state *kv.State) []string {
	var rows []string
	for row := range f.rows {
		rows = append(rows, row)
	}
	for key := range state.Entries {
		if strings.Contains(key, "/") {
			rows = append(rows, key)
		}
	}
	slices.Sort(rows)
	return slices.DeleteFunc(slices.Compact(rows), func(row string) bool { return desired.CheckKey(row) != nil })
}

// decides reports whether a key, as it is in Consul, answers for the rows that
// send it.
func (f *fleet) decides(c current, key string) bool {
	return c.exists && (c.rejected == nil || !f.unset[key])
}

// asking returns the rows that ask for key, sorted.
func (f *fleet) asking(key string) []string {
	var rows []string
	for row, keys := range f.rows {
		if slices.Contains(keys, key) {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return rows
}
