package devstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
)

// datacenter is the only one, named as Consul's default.
const datacenter = "dc1"

// A statusError is an answer with a status and a text. The texts are Consul's,
// which clients match.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func tooLarge(format string, args ...any) error {
	return &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf(format, args...)}
}

// failure is an error that Consul reports as its own, whatever caused it.
func failure(format string, args ...any) error {
	return &statusError{http.StatusInternalServerError, fmt.Sprintf(format, args...)}
}

var (
	errNoLeader = failure("No cluster leader")
	errNoDCPath = failure("No path to datacenter")
)

// A handler answers a request, or returns an error before it has written
// anything. An error that is no statusError has status 500.
type handler func(*Store, http.ResponseWriter, *http.Request) error

// A route serves a path, or with a final slash everything below it.
type route struct {
	pattern string
	methods []string
	serve   handler
}

var (
	get = []string{http.MethodGet}
	put = []string{http.MethodPut}
)

var routes = []route{
	{"/v1/kv/", []string{http.MethodGet, http.MethodPut, http.MethodDelete}, (*Store).serveKV},
	{"/v1/txn", put, (*Store).serveTxn},
	{"/v1/session/create", put, (*Store).createSession},
	{"/v1/session/destroy/", put, (*Store).destroySession},
	{"/v1/session/renew/", put, (*Store).renewSession},
	{"/v1/session/info/", get, (*Store).sessionInfo},
	{"/v1/session/node/", get, (*Store).sessionsOfNode},
	{"/v1/session/list", get, (*Store).listSessions},
	{"/v1/status/leader", get, (*Store).statusLeader},
	{"/v1/status/peers", get, (*Store).statusPeers},
	{"/v1/agent/self", get, (*Store).agentSelf},
}

// ServeHTTP serves Consul's API. Paths with characters that cannot be printed
// get 400 and paths that are not clean 301, as from an agent built with the Go
// of its time: a key with `//` can be written only in a transaction.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := r.URL.Path
	if strings.ContainsFunc(p, func(c rune) bool { return !unicode.IsPrint(c) }) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if clean := cleanPath(p); clean != p {
		redirect(w, r, clean)
		return
	}
	for _, rt := range routes {
		subtree := strings.HasSuffix(rt.pattern, "/")
		switch {
		case p == rt.pattern, subtree && strings.HasPrefix(p, rt.pattern):
			s.dispatch(w, r, rt)
			return
		case subtree && p+"/" == rt.pattern:
			redirect(w, r, rt.pattern)
			return
		}
	}
	index(w, p)
}

func redirect(w http.ResponseWriter, r *http.Request, to string) {
	u := url.URL{Path: to, RawQuery: r.URL.RawQuery}
	http.Redirect(w, r, u.String(), http.StatusMovedPermanently)
}

// cleanPath is path.Clean with the final slash kept, as net/http's ServeMux has it.
func cleanPath(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// index answers what no route does.
func index(w http.ResponseWriter, p string) {
	text := "Invalid URL path: if attempting to use the HTTP API, ensure the path starts with '/v1/'"
	switch {
	case p == "/":
		fmt.Fprintf(w, "%s: it speaks Consul's KV API, in memory, for demonstrations.\n", NodeName)
		return
	case strings.Contains(p, "/v1/"):
		text = "Invalid URL path: not a recognized HTTP API endpoint"
	}
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintln(w, text)
}

func (s *Store) dispatch(w http.ResponseWriter, r *http.Request, rt route) {
	w.Header().Set("X-Consul-Default-ACL-Policy", "allow")
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	allow := append([]string{http.MethodOptions}, rt.methods...)
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", strings.Join(allow, ","))
		return
	}
	if !slices.Contains(rt.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(allow, ","))
		err = &statusError{http.StatusMethodNotAllowed, fmt.Sprintf("method %s not allowed", r.Method)}
	} else if dc := query.Get("dc"); dc != "" && dc != datacenter {
		err = errNoDCPath
	} else {
		err = rt.serve(s, w, r)
	}
	if err != nil && r.Context().Err() == nil {
		fail(w, err)
	}
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if e, ok := errors.AsType[*statusError](err); ok {
		status = e.status
	}
	w.WriteHeader(status)
	fmt.Fprint(w, err.Error())
}

// reply writes v as JSON, indented for ?pretty.
func reply(w http.ResponseWriter, r *http.Request, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer to %s: %w", r.URL.Path, err)
	}
	if r.URL.Query().Has("pretty") {
		var b bytes.Buffer
		if err := json.Indent(&b, body, "", "    "); err != nil {
			return fmt.Errorf("indent the answer to %s: %w", r.URL.Path, err)
		}
		b.WriteByte('\n')
		body = b.Bytes()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
	return nil
}

// refuseEnterprise refuses namespaces and partitions, as the community edition does.
func refuseEnterprise(r *http.Request) error {
	q := r.URL.Query()
	switch {
	case r.Header.Get("X-Consul-Namespace") != "":
		return badRequest("Invalid header: \"X-Consul-Namespace\" - Namespaces are a Consul Enterprise feature")
	case q.Get("ns") != "":
		return badRequest("Invalid query parameter: \"ns\" - Namespaces are a Consul Enterprise feature")
	case r.Header.Get("X-Consul-Partition") != "":
		return badRequest("Invalid header: \"X-Consul-Partition\" - Partitions are a Consul Enterprise feature")
	case q.Get("partition") != "":
		return badRequest("Invalid query parameter: \"partition\" - Partitions are a Consul Enterprise feature")
	}
	return nil
}
