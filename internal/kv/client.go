package kv

import (
	"errors"
	"fmt"
	"net/http"

	consulapi "github.com/hashicorp/consul/api"
	"github.com/spf13/pflag"
)

// Anonymous is the secret of Consul's anonymous token. Sent literally it means
// the same as no token, except that Consul then does not hide that it filtered
// the answer (it masks X-Consul-Results-Filtered-By-ACLs for blank tokens).
const Anonymous = "anonymous"

// Config says how Consul is reached. A zero field takes the value of the
// CONSUL_… variable beside it, as Consul's own tools do; without either the
// default is the agent at localhost:8500. The proxies of the environment
// (HTTP_PROXY) are never used: what they answer is not Consul.
type Config struct {
	Address    string // CONSUL_HTTP_ADDR: host:port, http://, https:// or unix:// with a path
	Token      string // CONSUL_HTTP_TOKEN; prefer TokenFile, which can be rotated
	TokenFile  string // CONSUL_HTTP_TOKEN_FILE; read anew for each request, but see ReadOnce; beats Token
	CAFile     string // CONSUL_CACERT; read anew by the function of [Config.Reloadable]
	CAPath     string // CONSUL_CAPATH; the same
	CertFile   string // CONSUL_CLIENT_CERT; read anew for each connection
	KeyFile    string // CONSUL_CLIENT_KEY
	ServerName string // CONSUL_TLS_SERVER_NAME
	Namespace  string // CONSUL_NAMESPACE (Consul Enterprise)
	Partition  string // CONSUL_PARTITION (Consul Enterprise)

	once *func() (string, error) // reads the token; see [Config.ReadOnce]

	// MaxBytes bounds the body of each answer while it is read; longer ones fail
	// with [ErrTooLarge]. 0: no bound.
	MaxBytes int64
}

// ErrTooLarge is the error of an answer longer than [Config.MaxBytes].
var ErrTooLarge = errors.New("the answer is larger than the limit")

// AddFlags adds a flag for each field that may stand on a command line. There
// is none for a token, which everybody could read in the process list.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Address, "consul-addr", "", "address of Consul's HTTP API: host:port, http://, https:// or unix:// ($CONSUL_HTTP_ADDR, else localhost:8500)")
	flags.StringVar(&c.TokenFile, "token-file", "", "file with the ACL token ($CONSUL_HTTP_TOKEN_FILE)")
	flags.StringVar(&c.CAFile, "consul-ca-file", "", "certificate of the CA of Consul's HTTPS API ($CONSUL_CACERT)")
	flags.StringVar(&c.CAPath, "consul-ca-path", "", "directory of CA certificates ($CONSUL_CAPATH)")
	flags.StringVar(&c.CertFile, "consul-client-cert", "", "client certificate ($CONSUL_CLIENT_CERT)")
	flags.StringVar(&c.KeyFile, "consul-client-key", "", "key of the client certificate ($CONSUL_CLIENT_KEY)")
	flags.StringVar(&c.ServerName, "consul-tls-server-name", "", "name in Consul's certificate ($CONSUL_TLS_SERVER_NAME)")
	flags.StringVar(&c.Namespace, "consul-namespace", "", "namespace, Consul Enterprise only ($CONSUL_NAMESPACE)")
	flags.StringVar(&c.Partition, "consul-partition", "", "admin partition, Consul Enterprise only ($CONSUL_PARTITION)")
}

// Client returns a client whose every request carries the token that [Config.ReadToken]
// reads at that moment. It contacts nobody. Callers set no token of their own.
func (c Config) Client() (*consulapi.Client, error) {
	client, _, err := c.Reloadable()
	return client, err
}

// Reloadable is [Config.Client] with a function that makes the client read the
// certificates of authorities anew. Connections from before are not used for
// further requests, unless the function fails: then all stays as it is. The
// function may be called at any time.
func (c Config) Reloadable() (client *consulapi.Client, reload func() error, err error) {
	r := &requests{token: c.ReadToken, maxBytes: c.MaxBytes}
	api, err := c.connect(r)
	if err != nil {
		return nil, nil, err
	}
	client, err = consulapi.NewClient(api)
	if err != nil {
		return nil, nil, fmt.Errorf("setting up the client of Consul at %s: %w", c.Shown(), err)
	}
	return client, func() error { _, err := c.connect(r); return err }, nil
}

// connect gives r a transport by what is now in the files.
func (c Config) connect(r *requests) (*consulapi.Config, error) {
	api, socket, err := c.api()
	if err != nil {
		return nil, err
	}
	secure, err := newTLS(api.TLSConfig, c.once == nil)
	if err != nil {
		return nil, fmt.Errorf("setting up TLS to Consul: %w", err)
	}
	if before := r.next.Swap(newTransport(secure, socket)); before != nil {
		before.CloseIdleConnections()
	}
	api.HttpClient = &http.Client{
		Transport: r,
		// A redirect would carry the token to whoever it names.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	// Keeps NewClient from reading a token that it would hold for ever.
	api.Token, api.TokenFile = Anonymous, ""
	return api, nil
}

// api merges the fields over the environment. socket is the path of a unix
// socket, "" for TCP.
func (c Config) api() (api *consulapi.Config, socket string, err error) {
	if err := c.Check(); err != nil {
		return nil, "", err
	}
	at, _ := c.where() // it was checked
	api = consulapi.DefaultConfig()
	if c.given() != "" {
		api.Address = at.url() // else it is 127.0.0.1, which needs no resolver
	}
	override(&api.Namespace, c.Namespace)
	override(&api.Partition, c.Partition)
	override(&api.TLSConfig.CAFile, c.CAFile)
	override(&api.TLSConfig.CAPath, c.CAPath)
	override(&api.TLSConfig.CertFile, c.CertFile)
	override(&api.TLSConfig.KeyFile, c.KeyFile)
	override(&api.TLSConfig.Address, c.ServerName)
	if at.scheme == "unix" {
		// The library would replace the HTTP client, and the token with it.
		api.Address, socket = "localhost", at.rest
	}
	if at.user != "" && api.HttpAuth == nil {
		api.HttpAuth = at.credentials()
	}
	return api, socket, nil
}

func override(field *string, value string) {
	if value != "" {
		*field = value
	}
}
