package kv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/statefile"
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
	c.once = new(sync.OnceValues(func() (string, error) { return c.token(readPipe) }))
	return c
}

// readPipe reads any file, also a pipe, if it is no longer than a token may be.
func readPipe(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err == nil && len(data) > maxToken {
		err = fmt.Errorf("longer than %d bytes", maxToken)
	}
	return data, err
}

// ReadToken returns the token for the next request: the content of the token
// file as it is now, else the token that was given, else [Anonymous]. An error
// is a [*TokenError].
func (c Config) ReadToken() (string, error) {
	if c.once != nil {
		return (*c.once)()
	}
	// A pipe would hold the reader, whatever its deadline.
	return c.token(func(file string) ([]byte, error) { return statefile.ReadRegular(file, maxToken) })
}

// token is ReadToken with a function that reads the token file.
func (c Config) token(read func(string) ([]byte, error)) (string, error) {
	env := c.TokenFile == "" && c.Token == ""
	file := c.TokenFile
	if env {
		file = os.Getenv(consulapi.HTTPTokenFileEnvName)
	}
	if file != "" {
		return readTokenFile(file, read)
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

// maxToken is far more than any token has, in bytes.
const maxToken = 64 << 10

func readTokenFile(file string, read func(string) ([]byte, error)) (string, error) {
	data, err := read(file)
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
