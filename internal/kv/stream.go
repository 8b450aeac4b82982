package kv

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	consulapi "github.com/hashicorp/consul/api"
)

// The library's decoder holds the whole text of an answer at once, in a buffer
// that doubles until it fits. So a list is decoded pair by pair below it, by
// [requests], and the library is given an empty one.

// readAhead is how much of an answer is read at a time.
const readAhead = 32 << 10

// pairsKey is the key of a context's *consulapi.KVPairs: where the pairs of an
// answer go.
type pairsKey struct{}

// list is the library's List, but holds no more of the text than one pair.
func list(ctx context.Context, client *consulapi.Client, prefix string, query *consulapi.QueryOptions) (consulapi.KVPairs, *consulapi.QueryMeta, error) {
	var pairs consulapi.KVPairs
	_, meta, err := client.KV().List(prefix, query.WithContext(context.WithValue(ctx, pairsKey{}, &pairs)))
	return pairs, meta, err
}

// divert decodes the answer to a request of list, and leaves an empty one.
func divert(req *http.Request, resp *http.Response) error {
	pairs, ok := req.Context().Value(pairsKey{}).(*consulapi.KVPairs)
	if !ok || resp.StatusCode != http.StatusOK {
		return nil
	}
	defer resp.Body.Close()
	err := decodePairs(bufio.NewReaderSize(resp.Body, readAhead), pairs)
	if err != nil {
		return err
	}
	// A connection is used again only if the answer was read to its end.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("[]")), int64(len("[]"))
	return nil
}

// decodePairs reads one JSON array, or null for none, as the library would.
func decodePairs(text io.Reader, pairs *consulapi.KVPairs) error {
	decoder := json.NewDecoder(text)
	switch token, err := decoder.Token(); {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return &json.UnmarshalTypeError{Value: fmt.Sprint(token), Type: reflect.TypeFor[consulapi.KVPairs]()}
	}
	for decoder.More() {
		var pair *consulapi.KVPair
		if err := decoder.Decode(&pair); err != nil {
			return err
		}
		*pairs = append(*pairs, pair)
	}
	_, err := decoder.Token() // the end of the array, or why there is none
	return err
}
