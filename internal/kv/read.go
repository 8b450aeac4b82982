package kv

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"strings"
	"time"

	dep "github.com/hashicorp/consul-template/dependency"
	consulapi "github.com/hashicorp/consul/api"
)

// A ListFunc reads the state prefix once, recursively and consistently. If
// index is not 0 the answer comes when Consul's index of the prefix exceeds it,
// or after [Wait].
type ListFunc func(ctx context.Context, index uint64) (*Answer, error)

// Lister returns the ListFunc of a client that c made.
func (c Config) Lister(client *consulapi.Client, root string) ListFunc {
	prefix := StatePrefix(root)
	return func(ctx context.Context, index uint64) (*Answer, error) {
		token, err := c.ReadToken()
		if err != nil {
			return nil, err
		}
		// Default and stale reads return part of the keys, with status 200, from
		// a leader that replays its log (hashicorp/consul#2644).
		query := &consulapi.QueryOptions{RequireConsistent: true, WaitIndex: index, WaitTime: Wait}
		pairs, meta, err := list(ctx, client, prefix, query)
		if err != nil {
			return nil, err
		}
		return &Answer{Pairs: pairs, Meta: *meta, Anonymous: token == Anonymous}, nil
	}
}

// A Read is an accepted read that brought other keys, or another index, than
// the one before. Whoever holds one must not change it.
type Read struct {
	Generation uint64         // counts from 1
	Index      uint64         // Consul's index of the prefix
	At         time.Time      // when the answer came
	ID         string         // of the sentinel
	Pairs      []*dep.KeyPair // nil after [Watch.Release]
}

// keyPairs turns Consul's pairs into the library's, as its own query does.
func keyPairs(list consulapi.KVPairs, prefix string) []*dep.KeyPair {
	all := make([]dep.KeyPair, len(list))
	pairs := make([]*dep.KeyPair, len(list))
	for i, p := range list {
		all[i] = dep.KeyPair{
			Path: p.Key, Key: strings.TrimLeft(strings.TrimPrefix(p.Key, prefix), "/"), Value: string(p.Value),
			CreateIndex: p.CreateIndex, ModifyIndex: p.ModifyIndex, LockIndex: p.LockIndex, Flags: p.Flags, Session: p.Session,
		}
		pairs[i] = &all[i]
	}
	return pairs
}

// A trace is what has to be known of a read to tell whether the next is news.
// The keys themselves would take as much memory again.
type trace struct {
	generation uint64 // 0: whatever comes is news
	index      uint64
	id         string
	digest     uint64
}

// digest tells lists of pairs apart.
func digest(seed maphash.Seed, pairs []*dep.KeyPair) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var numbers [5 * 8]byte
	for _, p := range pairs {
		// The lengths tell where one text ends and the next begins.
		for i, n := range [...]uint64{uint64(len(p.Path)), uint64(len(p.Value)), p.CreateIndex, p.ModifyIndex, p.Flags} {
			binary.LittleEndian.PutUint64(numbers[8*i:], n)
		}
		_, _ = h.Write(numbers[:]) // never fails
		_, _ = h.WriteString(p.Path)
		_, _ = h.WriteString(p.Value)
	}
	return h.Sum64()
}
