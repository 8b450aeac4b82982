package tests_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"hadrain/internal/statusjson"
	"hadrain/internal/testpeer"
)

// responderStatus returns what the responder says of itself that serves HTTP at
// addr, host:port.
func responderStatus(t testing.TB, addr string) (status statusjson.Responder, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), testpeer.Timeout(t))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/status.json", nil)
	if err != nil {
		return status, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return status, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return status, err
	}
	return status, json.Unmarshal(body, &status)
}

// waitAsked waits until every row of the responder at addr passes, and then for
// another question of each: by then HAProxy has digested the answer before.
func waitAsked(t testing.TB, addr string, rows int, passes func(statusjson.Row) bool) {
	t.Helper()
	first := map[string]statusjson.Row{}
	done := map[string]bool{}
	testpeer.WaitFor(t, "HAProxy to ask for every row", func() (bool, string) {
		status, err := responderStatus(t, addr)
		if err != nil {
			return false, err.Error()
		}
		for _, row := range status.Rows {
			seen, ok := first[row.Row]
			switch {
			case !ok && passes(row):
				first[row.Row] = row
			case ok && row.Asked.After(seen.Asked):
				done[row.Row] = true
			}
		}
		return len(done) == rows, fmt.Sprintf("%d of %d rows; state index %d", len(done), rows, status.State.Index)
	})
}

// waitChecked waits until a check of every row has begun and ended from now on.
func waitChecked(t testing.TB, addr string, rows int) {
	t.Helper()
	now := time.Now()
	waitAsked(t, addr, rows, func(row statusjson.Row) bool { return row.Asked.After(now) })
}
