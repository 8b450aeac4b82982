package kv

import (
	"slices"
	"strings"
	"unicode/utf8"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/desired"
)

// An Answer is what Consul answered to a list of the state prefix, as it came.
type Answer struct {
	Pairs     consulapi.KVPairs
	Meta      consulapi.QueryMeta
	Anonymous bool // no token was sent
}

// guard judges answers. Its zero maxKeys allows any number.
type guard struct {
	root    string
	address string // for people
	maxKeys int
}

// check returns the id of the sentinel in a good answer, else why the answer
// cannot be believed. expect is the id that it must have; "" allows any.
func (g guard) check(a *Answer, expect string) (id string, err *ReadError) {
	if err := g.checkMeta(a); err != nil {
		return "", err
	}
	sentinel, err := g.checkPairs(a.Pairs)
	if err != nil {
		return "", err
	}
	if sentinel == nil {
		return "", refuse(NoSentinel, "%s under %s, but not the sentinel %s: the data is lost or was never there; check the address and --kv-root; "+
			"after a loss run hadrain init --id UUID, with the id in the first line of a state file; if it is new, run hadrain init",
			desired.Count(len(a.Pairs), "key"), StatePrefix(g.root), SentinelKey(g.root))
	}
	if n := len(a.Pairs) - 1; g.maxKeys > 0 && n > g.maxKeys {
		return "", refuse(TooManyKeys, "%s under %s besides the sentinel, more than --max-keys %d: delete some, or raise it",
			desired.Count(n, "key"), StatePrefix(g.root), g.maxKeys)
	}
	id, bad := ParseSentinel(string(sentinel.Value))
	if bad != nil {
		return "", refuse(Malformed, "%s: %v; repair it with hadrain init --id UUID", SentinelKey(g.root), bad)
	}
	if expect != "" && id != expect {
		return "", refuse(WrongSentinel, "%s has id %s, but the state here came from id %s: another cluster, or the prefix was made anew; "+
			"if Consul is right, remove the state file to accept it; if it lost its data, run hadrain init --id %s",
			SentinelKey(g.root), id, expect, expect)
	}
	return id, nil
}

func (g guard) checkMeta(a *Answer) *ReadError {
	switch {
	case a.Meta.LastIndex == 0:
		return refuse(NotConsul, "the answer of %s has no X-Consul-Index: this is no Consul, or a proxy in front of it drops headers; check the address%s", g.address, portHint(g.address))
	case !a.Meta.KnownLeader:
		return refuse(NoLeader, "the server that answered knows no leader")
	case a.Anonymous && (a.Meta.ResultsFilteredByACLs || len(a.Pairs) == 0 && a.Meta.DefaultACLPolicy == "deny"):
		return refuse(ACLAnonymous, "Consul denies access by default and no token was sent: give one with --token-file")
	case a.Meta.ResultsFilteredByACLs:
		return refuse(ACLFiltered, "Consul left keys out of the answer: the token needs key_prefix %q { policy = \"list\" }, and no rule below it that takes keys away", StatePrefix(g.root))
	}
	return nil
}

// checkPairs looks for the sentinel, which is nil if there is none.
func (g guard) checkPairs(pairs consulapi.KVPairs) (sentinel *consulapi.KVPair, err *ReadError) {
	prefix, key := StatePrefix(g.root), SentinelKey(g.root)
	for _, p := range pairs {
		if p == nil || !strings.HasPrefix(p.Key, prefix) {
			return nil, refuse(Malformed, "the answer holds something else than keys under %s: this is no Consul", prefix)
		}
		if p.Key == key {
			sentinel = p
		}
	}
	if key, ok := repeated(pairs); ok {
		return nil, refuse(Malformed, "the answer holds the key %s twice: this is no Consul, or something between changes its answers", desired.Printable(key))
	}
	return sentinel, nil
}

// repeated returns a key that stands in pairs more than once. Two keys that are
// no UTF-8 may look the same: Consul's JSON has U+FFFD for what cannot be said.
func repeated(pairs consulapi.KVPairs) (key string, ok bool) {
	byKey := func(a, b *consulapi.KVPair) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(pairs, byKey) { // as Consul's are
		pairs = slices.SortedFunc(slices.Values(pairs), byKey)
	}
	for i := 1; i < len(pairs); i++ {
		if key = pairs[i].Key; key == pairs[i-1].Key && !strings.ContainsRune(key, utf8.RuneError) {
			return key, true
		}
	}
	return "", false
}
