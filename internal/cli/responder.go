package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"hadrain/internal/cmdline"
	"hadrain/internal/statusjson"
)

// responderProgram is the name in a responder's /status.json.
const responderProgram = "hadrain-responder"

// errURL is what is wrong with an operand that is no URL of a daemon.
var errURL = errors.New("want a URL such as http://127.0.0.1:9779; in a user or password write %40 for @, %2F for / and %3F for ?")

// parseURL reads the URL of a daemon. The error shows no user and no password.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	// Behind an @ that is not where the library takes it for the end of a
	// password, a part of that password would be shown as a host or a path.
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") {
		shown := text
		if at := strings.LastIndexByte(text, '@'); at >= 0 {
			shown = text[at+1:]
		}
		return nil, fmt.Errorf("%q: %w", shown, errURL)
	}
	return u, nil
}

// shownURL returns a URL for people and documents.
func shownURL(u *url.URL) string {
	shown := *u
	shown.User = nil
	return shown.String()
}

// responderURLs returns the URLs of --responder, each responder once: asked
// twice, it would seem to be two load balancers.
func responderURLs(texts []string) ([]*url.URL, error) {
	var urls []*url.URL
	seen := map[string]bool{}
	for _, text := range texts {
		u, err := parseURL(text)
		if err == nil && (u.RawQuery != "" || u.Fragment != "") {
			err = fmt.Errorf("%q: %w", shownURL(u), errURL)
		}
		if err != nil {
			return nil, cmdline.Usage(fmt.Errorf("--responder %w", err))
		}
		if name := identity(u); !seen[name] {
			seen[name] = true
			urls = append(urls, u)
		}
	}
	return urls, nil
}

// identity returns what is the same for all spellings of one URL.
func identity(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host := net.JoinHostPort(strings.ToLower(u.Hostname()), port)
	return u.Scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/")
}

// daemonClient returns a client for daemons, which believes a certificate if the
// authority in caFile has signed it; "": one of those that this machine trusts.
func daemonClient(caFile string) (*http.Client, error) {
	// No proxy of the environment: a daemon is on this network.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{}}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("reading --responder-ca-file: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading --responder-ca-file %s: there is no certificate in it", caFile)
		}
	}
	return &http.Client{Transport: transport}, nil
}

// get asks for u. An error does not repeat the URL.
func get(ctx context.Context, client *http.Client, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err // it was parsed before
	}
	resp, err := client.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		err = fmt.Errorf("%w; name its authority with --responder-ca-file", err)
	}
	if resp != nil {
		resp.Status = escape(resp.Status) // the peer may be anybody
	}
	return resp, err
}

// refusedBy says of an answer that is not what was asked for what to do.
func refusedBy(u *url.URL, resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("it answers %s: put USER:PASSWORD@ before the host of its URL", resp.Status)
	case resp.StatusCode == http.StatusBadRequest && u.Scheme == "http":
		return fmt.Errorf("it answers %s: does it want https?", resp.Status)
	}
	return fmt.Errorf("it answers %s", resp.Status)
}

// fetchStatus reads the document of the responder at base.
func fetchStatus(ctx context.Context, client *http.Client, base *url.URL, doc *statusjson.Responder) error {
	resp, err := get(ctx, client, base.JoinPath("status.json"))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return refusedBy(base, resp)
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
