package kv

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	consulapi "github.com/hashicorp/consul/api"
)

// The reasons for which an answer of Consul is refused.
const (
	NotConsul     = "not_consul"     // no X-Consul-Index: something else answers at the address
	NoLeader      = "no_leader"      // the server that answered knows no leader
	ACLFiltered   = "acl_filtered"   // the token may not read all of the prefix
	ACLAnonymous  = "acl_anonymous"  // there is no token, and access is denied by default
	NoSentinel    = "no_sentinel"    // data lost, prefix deleted or never initialised
	WrongSentinel = "wrong_sentinel" // another prefix or cluster than the one in the file
	TooManyKeys   = "too_many_keys"  // more keys than the limit
	TooLarge      = "too_large"      // more bytes than the limit
	Malformed     = "malformed"      // not what Consul's KV API answers
)

// The reasons for which there is no answer to judge. An HTTP status other than
// 200 and 404 is "http_" and its number.
const (
	Timeout   = "timeout"   // no answer within the deadline
	Transport = "transport" // no connection, or it broke
	NoToken   = "token"     // the token file cannot be used
)

// A ReadError says why a read of Consul was not accepted.
type ReadError struct {
	Reason  string // one word, a label of metrics
	Refused bool   // an answer came and cannot be believed; false: there was none
	Message string // what happened and what to do
	Err     error  // the cause; nil for a refusal
}

// Error returns the reason and the message.
func (e *ReadError) Error() string { return e.Reason + ": " + e.Message }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

func refuse(reason, format string, args ...any) *ReadError {
	return &ReadError{Reason: reason, Refused: true, Message: fmt.Sprintf(format, args...)}
}

// answered reports whether Consul, or what is there in its place, answered at all.
func (e *ReadError) answered() bool {
	return e.Refused || errors.As(e.Err, new(consulapi.StatusError))
}

// classify gives an error of a request its reason. address is for people.
func classify(err error, address string) *ReadError {
	var status consulapi.StatusError
	if errors.As(err, &status) {
		return statusError(status, address)
	}
	if token, ok := errors.AsType[*TokenError](err); ok {
		return &ReadError{Reason: NoToken, Message: token.Error(), Err: err}
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		// Its text repeats the address and the query.
		err = request.Err
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, mismatch := errors.AsType[*json.UnmarshalTypeError](err)
	_, value := errors.AsType[base64.CorruptInputError](err)
	switch {
	case errors.Is(err, ErrTooLarge):
		return &ReadError{
			Reason: TooLarge, Refused: true, Err: err,
			Message: "the keys under the state prefix take more bytes than --max-bytes allows: delete some, or raise it",
		}
	case errors.Is(err, context.DeadlineExceeded):
		return &ReadError{Reason: Timeout, Message: "no answer from Consul at " + address + " in time" + portHint(address), Err: err}
	case syntax, mismatch, value, errors.Is(err, errMore), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &ReadError{
			Reason: Malformed, Refused: true, Err: err,
			Message: fmt.Sprintf("the answer of %s is cut short or no JSON of Consul: %.500v%s", address, err, portHint(address)),
		}
	}
	return &ReadError{Reason: Transport, Message: fmt.Sprintf("reaching Consul at %s: %.500v%s", address, err, transportHint(err, address)), Err: err}
}

// transportHint says what to do about a connection that is not made.
func transportHint(err error, address string) string {
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	switch {
	case authority:
		return "; give the certificate of its CA with --consul-ca-file"
	case name:
		return "; give a name that it is valid for with --consul-tls-server-name"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "; it speaks no TLS there: write http:// and unset $" + consulapi.HTTPSSLEnvName
	case strings.Contains(err.Error(), "tls: certificate required"): // an alert has no type
		return "; give a client certificate with --consul-client-cert and --consul-client-key"
	}
	return portHint(address)
}

// anonymousAccessor is how Consul names the anonymous token in what it refuses.
const anonymousAccessor = "00000000-0000-0000-0000-000000000002"

func statusError(status consulapi.StatusError, address string) *ReadError {
	e := &ReadError{
		Reason:  fmt.Sprintf("http_%d", status.Code),
		Message: fmt.Sprintf("Consul at %s answered %d: %.200q", address, status.Code, status.Body),
		Err:     status,
	}
	switch {
	case status.Code == http.StatusForbidden && strings.Contains(status.Body, "ACL not found"):
		e.Message += "; the token is unknown, deleted or expired: give another one with --token-file"
	case status.Code == http.StatusForbidden && strings.Contains(status.Body, anonymousAccessor):
		e.Message += "; no token was sent: give one with --token-file"
	case status.Code == http.StatusForbidden:
		// Only acl.enable_key_list_policy makes Consul refuse a list.
		e.Message += "; the token needs key_prefix with policy \"list\" on the state prefix, which includes read"
	case status.Code == http.StatusBadRequest && strings.Contains(status.Body, "HTTPS server"):
		e.Message += "; it wants TLS there: write https:// before the address"
	case status.Code == http.StatusBadRequest && strings.Contains(status.Body, "Enterprise"):
		e.Message += "; a namespace or partition ($CONSUL_NAMESPACE, $CONSUL_PARTITION) needs Consul Enterprise"
	case status.Code/100 == 3:
		e.Message += "; redirects are not followed: give the address that answers itself"
	}
	return e
}
