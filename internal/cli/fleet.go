package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"hadrain/internal/cmdline"
	"hadrain/internal/desired"
	"hadrain/internal/kv"
	"hadrain/internal/statusjson"
)

// responderProgram is the name in a responder's /status.json.
const responderProgram = "hadrain-responder"

// maxResponderWait is how long a responder may take: it answers from memory,
// and the commands for an emergency go on without it.
const maxResponderWait = 3 * time.Second

// report is what one responder said.
type report struct {
	url string // without its password
	doc statusjson.Responder
	err error // why there is no document
}

// fleet is what is known of the rows that HAProxy asks for.
type fleet struct {
	reports []report
	rows    map[string][]string // row -> its keys in the order sent
	unset   map[string]bool     // keys whose only values were rejected: they hide no group
}

func checkResponders(urls []string) error {
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return cmdline.Usage(fmt.Errorf("--responder %q: want a URL such as http://127.0.0.1:9779", text))
		}
	}
	return nil
}

// redact returns a URL that was checked, for people and documents.
func redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "" // it would have been refused
	}
	return u.Redacted()
}

// askResponders asks all responders at the same time.
func (a *app) askResponders(ctx context.Context) fleet {
	ctx, cancel := context.WithTimeout(ctx, min(a.timeout, maxResponderWait))
	defer cancel()
	f := fleet{reports: make([]report, len(a.responders)), rows: map[string][]string{}, unset: map[string]bool{}}
	// No proxy of the environment: a responder is on this network.
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var wait sync.WaitGroup
	for i, base := range a.responders {
		wait.Go(func() {
			f.reports[i].url = redact(base)
			f.reports[i].err = fetchStatus(ctx, client, base, &f.reports[i].doc)
		})
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

func fetchStatus(ctx context.Context, client *http.Client, base string, doc *statusjson.Responder) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base, "/")+"/status.json", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := err.(*url.Error); ok {
			err = u.Err // its text repeats the URL
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(doc); err != nil {
		return fmt.Errorf("reading its /status.json: %w", err)
	}
	if doc.Program.Program != responderProgram || doc.Schema != statusjson.Schema {
		*doc = statusjson.Responder{}
		return fmt.Errorf("this is no %s of schema %d", responderProgram, statusjson.Schema)
	}
	return nil
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
