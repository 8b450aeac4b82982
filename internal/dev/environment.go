package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"hadrain/internal/haproxy"
	"hadrain/internal/statusjson"
)

// environment is what runs, as the view and the demonstration see it.
type environment struct {
	servers   []server
	store     store
	root      string // KV root
	statePath string // the state file
	log       string // path of the log of render and responder
	command   string // how to call this program, for people

	render, responder   string         // base URLs of their HTTP
	haproxy             *haproxyServer // nil where HAProxy is not installed
	frontend, statsPage string         // base URLs; "" without HAProxy
	traffic             *traffic       // nil without HAProxy

	client *http.Client // for the status of the daemons
}

// canary is the group key of the story.
const canary = "canary"

// live returns what HAProxy shows for each server, by row key.
func (e *environment) live(ctx context.Context) (map[string]haproxy.Stat, error) {
	rows, err := haproxy.Stats(ctx, e.haproxy.socket)
	if err != nil {
		return nil, err
	}
	live := make(map[string]haproxy.Stat, len(rows))
	for _, s := range rows {
		if s.Kind == haproxy.StatServer {
			live[s.Key()] = s
		}
	}
	return live, nil
}

// states returns what HAProxy holds for each server, by row key.
func (e *environment) states(ctx context.Context) (map[string]haproxy.ServerState, error) {
	rows, err := haproxy.ServersState(ctx, e.haproxy.socket)
	if err != nil {
		return nil, err
	}
	states := make(map[string]haproxy.ServerState, len(rows))
	for _, s := range rows {
		states[s.Key()] = s
	}
	return states, nil
}

// renderStatus returns what render serves at /status.json.
func (e *environment) renderStatus(ctx context.Context) (statusjson.Render, error) {
	var doc statusjson.Render
	err := e.status(ctx, e.render, &doc)
	return doc, err
}

// responderStatus returns what responder serves at /status.json.
func (e *environment) responderStatus(ctx context.Context) (statusjson.Responder, error) {
	var doc statusjson.Responder
	err := e.status(ctx, e.responder, &doc)
	return doc, err
}

func (e *environment) status(ctx context.Context, base string, doc any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	url := base + "/status.json"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %s", url, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(doc); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}
