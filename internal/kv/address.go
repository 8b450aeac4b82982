package kv

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	consulapi "github.com/hashicorp/consul/api"
)

// address is where Consul is, taken apart.
type address struct {
	scheme string // lower case; "": none was given
	user   string // "user:password" as it was written; "": none
	rest   string // host or host:port, and any path; of a unix socket its path
}

// url is the address without the user.
func (a address) url() string {
	if a.scheme == "" {
		return a.rest
	}
	return a.scheme + "://" + a.rest
}

// credentials returns the user and the password, which an address may hold
// escaped as in every URL.
func (a address) credentials() *consulapi.HttpBasicAuth {
	name, password, _ := strings.Cut(a.user, ":")
	return &consulapi.HttpBasicAuth{Username: unescaped(name), Password: unescaped(password)}
}

func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

var (
	word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`) // a scheme

	errSlash = errors.New(`a "/" before "@": in a user or password write %2F for it, and in a path %40 for "@"`)
	errQuery = errors.New(`"?" or "#" in it: want at most a path behind the host`)
	errSpace = errors.New("white space in it")
	errPath  = errors.New("a path without a scheme: write http:// or https:// before it")
	errForm  = errors.New("want host:port, http://, https:// or unix:// and a path")
)

// parseAddress takes an address apart. The error shows nothing that may be a
// password; what is returned with it has none, either.
func parseAddress(text string) (address, error) {
	a := address{rest: text}
	if scheme, rest, ok := strings.Cut(text, "://"); ok && word.MatchString(scheme) {
		a.scheme, a.rest = strings.ToLower(scheme), rest
	}
	if a.scheme == "unix" && a.rest != "" {
		return a, nil
	}
	authority, path, slash := strings.Cut(a.rest, "/")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		a.user, a.rest = authority[:at], authority[at+1:]
		if slash {
			a.rest += "/" + path
		}
	}
	// Where a password ends can only be guessed here. It is not to be shown.
	at := strings.LastIndexByte(a.rest, '@')
	// The library would ask for another path with a slash at the end.
	a.rest = strings.TrimRight(a.rest[at+1:], "/")
	switch {
	case at >= 0:
		return a, errSlash
	case a.scheme != "" && a.scheme != "http" && a.scheme != "https", a.rest == "" || a.rest[0] == '/':
		return a, errForm
	case strings.ContainsFunc(a.rest, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return a, errSpace
	case strings.ContainsAny(a.rest, "?#"):
		return a, errQuery
	case a.scheme == "" && strings.Contains(a.rest, "/"):
		return a, errPath // the library would take it for a part of the host
	}
	return a, nil
}

// defaultAddress is what Consul's own tools take without any.
const defaultAddress = "localhost:8500"

// given is the address that c or the environment names, as it was written; "":
// none.
func (c Config) given() string { return cmp.Or(c.Address, os.Getenv(consulapi.HTTPAddrEnvName)) }

func (c Config) where() (address, error) { return parseAddress(cmp.Or(c.given(), defaultAddress)) }

// Check returns an error if the address of Consul is none, or if a variable or a
// client certificate cannot be meant. It contacts nobody and reads no file.
func (c Config) Check() error {
	if err := errors.Join(checkEnv(), c.checkPair()); err != nil {
		return err
	}
	if at, err := c.where(); err != nil {
		return fmt.Errorf("address of Consul %q: %w", at.url(), err)
	}
	return nil
}

// Shown returns the address for people: without credentials.
func (c Config) Shown() string {
	at, _ := c.where() // what it returns with an error can be shown
	return at.url()
}

// portHint says of an address without a port, at which no Consul answers, which
// one that means, as to Consul's own tools, and what an agent's would be. It is
// empty for all others.
func portHint(shown string) string {
	a, err := parseAddress(shown)
	host, _, _ := strings.Cut(a.rest, "/")
	_, _, bad := net.SplitHostPort(host)
	missing, ok := errors.AsType[*net.AddrError](bad)
	if err != nil || a.scheme == "unix" || !ok || missing.Err != "missing port in address" {
		return ""
	}
	secure, _ := strconv.ParseBool(os.Getenv(consulapi.HTTPSSLEnvName))
	if a.scheme == "https" || secure {
		return fmt.Sprintf("; without a port that is port 443: for an agent write https://%s:8501", host)
	}
	return fmt.Sprintf("; without a port that is port 80: for an agent write %s:8500", host)
}
