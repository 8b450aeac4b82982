package kv

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
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

// maxError is how much of an answer that is an error is looked at.
const maxError = 4 << 10

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
	if !ok {
		return nil
	}
	if resp.StatusCode != http.StatusOK {
		// The library reads all of an error, and the status keeps it.
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxError), resp.Body}
		return nil
	}
	defer resp.Body.Close()
	if err := decodePairs(resp.Body, pairs); err != nil {
		return err
	}
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("[]")), int64(len("[]"))
	return nil
}

var errMore = errors.New("text follows the list")

// decodePairs reads one JSON array, or null for none, as the library would, and
// to the end of the text: else its connection is not used again, and whatever
// stands there would be believed.
func decodePairs(text io.Reader, pairs *consulapi.KVPairs) error {
	text = bufio.NewReaderSize(text, readAhead)
	decoder := json.NewDecoder(text)
	if err := decodeList(decoder, pairs); err != nil {
		return err
	}
	rest := bufio.NewReader(io.MultiReader(decoder.Buffered(), text))
	for {
		switch c, err := rest.ReadByte(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c != ' ' && c != '\n' && c != '\r' && c != '\t':
			return errMore
		}
	}
}

// kind says what a token is the start of, without what whoever sent it wrote.
func kind(token json.Token) string {
	if _, ok := token.(json.Delim); ok {
		return "object"
	}
	return fmt.Sprintf("%T", token)
}

func decodeList(decoder *json.Decoder, pairs *consulapi.KVPairs) error {
	switch token, err := decoder.Token(); {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return &json.UnmarshalTypeError{Value: kind(token), Type: reflect.TypeFor[consulapi.KVPairs]()}
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
