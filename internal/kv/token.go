package kv

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	consulapi "github.com/hashicorp/consul/api"
)

// TokenError says that there is no token to send: its file cannot be read, or
// is empty. Consul would take an empty token for the anonymous one, and answer
// a list that it may not read with nothing at all.
type TokenError struct {
	File string
	Err  error
}

// Error names the file.
func (e *TokenError) Error() string {
	return fmt.Sprintf("reading the Consul token from %s: %v", e.File, e.Err)
}

// Unwrap returns the cause.
func (e *TokenError) Unwrap() error { return e.Err }

// ReadOnce returns c so that each of its files is read once, not anew: a pipe, as
// a shell makes of <(COMMAND), cannot be read twice. The token's is read at the
// first request. It is for one client that does not live long.
func (c Config) ReadOnce() Config {
	c.once = new(sync.OnceValues(c.ReadToken))
	return c
}

// ReadToken returns the token for the next request: the content of the token
// file as it is now, else the token that was given, else [Anonymous]. An error
// is a [*TokenError].
func (c Config) ReadToken() (string, error) {
	if c.once != nil {
		return (*c.once)()
	}
	env := c.TokenFile == "" && c.Token == ""
	file := c.TokenFile
	if env {
		file = os.Getenv(consulapi.HTTPTokenFileEnvName)
	}
	if file != "" {
		return readTokenFile(file)
	}
	token := c.Token
	if env {
		token = os.Getenv(consulapi.HTTPTokenEnvName)
	}
	// A blank one means the same as none, and Consul hides that it filtered the
	// answer from whoever sends it.
	if token = strings.TrimSpace(token); token == "" {
		return Anonymous, nil
	}
	if err := checkToken(token); err != nil {
		return "", &TokenError{File: "$" + consulapi.HTTPTokenEnvName, Err: err}
	}
	return token, nil
}

// checkToken refuses what no header can carry, without a word of it.
func checkToken(token string) error {
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c >= 0x7f {
			return errors.New("it holds more than one word: want the secret id of a token and nothing else")
		}
	}
	return nil
}

func readTokenFile(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", &TokenError{File: file, Err: err}
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", &TokenError{File: file, Err: errors.New("the file is empty: write the token into it, or do without a token file")}
	}
	if err := checkToken(token); err != nil {
		return "", &TokenError{File: file, Err: err}
	}
	return token, nil
}

// clientCertificate reads the certificate anew for each handshake, so that a
// renewed one is used without a restart.
func clientCertificate(certFile, keyFile string) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		return &cert, nil
	}
}

// boundedBody fails with [ErrTooLarge] once more than left bytes were read.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	// One byte more than is allowed tells a long answer from one that just fits.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n, ErrTooLarge
	}
	return n, err
}
