package devstore_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSameAnswers sends random requests to the embedded store and to a real
// Consul and wants the same answers. Indexes may differ by a constant history,
// so each pair of them must belong together for ever, in the same order.
func TestSameAnswers(t *testing.T) {
	p := &pairing{
		ours: embedded(t), theirs: realConsul(t),
		indexes: map[uint64]uint64{1: 1}, seen: map[string]twin{},
		names: map[string]string{}, outcomes: map[string]int{},
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			p.rand, p.root = rand.New(rand.NewPCG(seed, 0)), fmt.Sprint("same", seed, "/")
			for range 700 {
				p.step(t)
			}
			p.checkOrder(t)
		})
	}
	p.checkVariety(t)
}

// A twin is what the two peers call the same thing.
type twin struct{ ours, theirs string }

type pairing struct {
	rand         *rand.Rand
	root         string
	ours, theirs *peer
	indexes      map[uint64]uint64 // of ours to theirs
	seen         map[string]twin   // the last ModifyIndex seen of each key
	sessions     []twin
	names        map[string]string // a session's id to what it is called here
	outcomes     map[string]int    // how often each kind of request ended how
	log          []string
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (p *pairing) key() string {
	return p.root + pick(p.rand, "", "a", "a", "a/1", "a/2", "a/b/1", "ab", "b", "b/1", "b/2/")
}

func (p *pairing) session() twin {
	if len(p.sessions) == 0 || p.rand.IntN(20) == 0 {
		return twin{"nobody", "nobody"}
	}
	return pick(p.rand, p.sessions[max(0, len(p.sessions)-2):]...) // few, so that they meet
}

// index returns an index that a client may have of the key.
func (p *pairing) index(key string) twin {
	if e, ok := p.seen[key]; ok && p.rand.IntN(4) > 0 {
		return e
	}
	return pick(p.rand, twin{"0", "0"}, twin{"1", "1"})
}

// step sends one random request to both. %I in it stands for an index, %S for a
// session.
func (p *pairing) step(t *testing.T) {
	t.Helper()
	k := p.key()
	path, value := "/v1/kv/"+k, pick(p.rand, "", "x", "y")
	index, session := p.index(k), p.session()
	switch p.rand.IntN(26) {
	case 0, 1:
		p.both(t, "GET", path, "", index, session)
	case 2, 3:
		p.both(t, "GET", path+"?recurse", "", index, session)
	case 4:
		p.both(t, "GET", path+pick(p.rand, "?keys", "?keys&separator=/", "?raw"), "", index, session)
	case 5, 6, 7, 8, 9:
		p.both(t, "PUT", path+pick(p.rand, "", "?flags=1"), value, index, session)
	case 10, 11:
		p.both(t, "PUT", path+"?cas=%I", value, index, session)
	case 12, 13:
		p.both(t, "PUT", path+"?acquire=%S", value, index, session)
	case 14, 24, 25:
		p.both(t, "PUT", path+"?release=%S", value, index, session)
	case 15:
		p.both(t, "DELETE", path+pick(p.rand, "", "?recurse"), "", index, session)
	case 16:
		p.both(t, "DELETE", path+"?cas=%I", "", index, session)
	case 17:
		p.newSession(t)
	case 18:
		p.both(t, "PUT", pick(p.rand, "/v1/session/destroy/%S", "/v1/session/renew/%S", "/v1/session/renew/%S"), "", index, session)
	case 19:
		p.both(t, "GET", pick(p.rand, "/v1/session/info/%S", "/v1/session/list"), "", index, session)
	default:
		p.both(t, "PUT", "/v1/txn", p.txnBody(), index, session)
	}
}

func (p *pairing) txnBody() string {
	ops := make([]string, 1+p.rand.IntN(3))
	for i := range ops {
		verb := pick(p.rand, "set", "set", "cas", "lock", "unlock", "get", "get-tree", "get-or-empty", "delete",
			"delete-tree", "delete-cas", "check-index", "check-session", "check-not-exists", "bogus")
		ops[i] = fmt.Sprintf(`{"KV":{"Verb":%q,"Key":%q,"Value":%q,"Index":%%I,"Session":"%%S"}}`,
			verb, p.key(), pick(p.rand, "", "eA=="))
	}
	return "[" + strings.Join(ops, ",") + "]"
}

func (p *pairing) newSession(t *testing.T) {
	t.Helper()
	body := fmt.Sprintf(`{"Name":"%d","Behavior":%q,"LockDelay":%q}`,
		len(p.sessions), pick(p.rand, "release", "delete"), pick(p.rand, "0s", "0s", "60s"))
	s := twin{p.ours.session(t, body), p.theirs.session(t, body)}
	p.sessions = append(p.sessions, s)
	p.names[s.ours], p.names[s.theirs] = body, body // the body holds the number
	p.log = append(p.log, "new session "+body)
}

// both sends a request to both peers and compares the answers.
func (p *pairing) both(t *testing.T, method, path, body string, index, session twin) {
	t.Helper()
	fill := func(text, index, session string) string {
		return strings.NewReplacer("%I", index, "%S", session).Replace(text)
	}
	a := p.ours.do(t, method, fill(path, index.ours, session.ours), fill(body, index.ours, session.ours))
	b := p.theirs.do(t, method, fill(path, index.theirs, session.theirs), fill(body, index.theirs, session.theirs))
	p.log = append(p.log, fmt.Sprintf("%s %s %s\n  ours   %d %s\n  theirs %d %s", method, path, body,
		a.status, strings.TrimSpace(a.body), b.status, strings.Join(strings.Fields(b.body), " ")))
	p.count(method, path, a)
	if a.status != b.status {
		p.fail(t, "the statuses differ")
	}
	for _, name := range []string{
		"Content-Type", "X-Consul-KnownLeader", "X-Consul-LastContact",
		"X-Consul-Default-ACL-Policy", "X-Consul-Query-Backend",
	} {
		if !slices.Equal(a.header[http.CanonicalHeaderKey(name)], b.header[http.CanonicalHeaderKey(name)]) {
			p.fail(t, "the headers differ: "+name)
		}
	}
	if a.header.Get("X-Consul-Index") != "" || b.header.Get("X-Consul-Index") != "" {
		p.match(t, float64(a.index(t)), float64(b.index(t)))
	}
	var x, y any
	if json.Unmarshal([]byte(a.body), &x) != nil || json.Unmarshal([]byte(b.body), &y) != nil {
		x, y = a.body, b.body
	}
	p.compare(t, "", byName(x), byName(y))
}

// byName sorts sessions by name: their ids, by which both sort, are random.
func byName(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	slices.SortStableFunc(list, func(a, b any) int {
		x, _ := a.(map[string]any)
		y, _ := b.(map[string]any)
		return cmp.Compare(fmt.Sprint(x["Name"]), fmt.Sprint(y["Name"]))
	})
	return list
}

var (
	number = regexp.MustCompile(`\d+`)
	uuid   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

func (p *pairing) compare(t *testing.T, field string, x, y any) {
	t.Helper()
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok || len(x) != len(y) {
			p.fail(t, "the fields differ: "+field)
		}
		for name := range x {
			p.compare(t, name, x[name], y[name])
		}
		if key, ok := x["Key"].(string); ok {
			p.seen[key] = twin{fmt.Sprintf("%.0f", x["ModifyIndex"]), fmt.Sprintf("%.0f", y["ModifyIndex"])}
		}
	case []any:
		y, ok := y.([]any)
		if !ok || len(x) != len(y) {
			p.fail(t, "the lists differ: "+field)
		}
		for i := range x {
			p.compare(t, field, x[i], y[i])
		}
	case float64:
		y, ok := y.(float64)
		switch {
		case ok && (field == "CreateIndex" || field == "ModifyIndex"):
			p.match(t, x, y)
		case x != y:
			p.fail(t, fmt.Sprintf("%s: %v and %v", field, x, y))
		}
	case string:
		y, _ := y.(string)
		if p.plain(x) != p.plain(y) {
			p.fail(t, fmt.Sprintf("%s: %q and %q", field, x, y))
		}
	default:
		if x != y {
			p.fail(t, fmt.Sprintf("%s: %v and %v", field, x, y))
		}
	}
}

// plain replaces what the peers may call by different names.
func (p *pairing) plain(text string) string {
	if text == p.ours.node || text == p.theirs.node {
		return "node"
	}
	text = uuid.ReplaceAllStringFunc(text, func(id string) string { return p.names[id] })
	if strings.HasPrefix(text, "failed index check") {
		text = number.ReplaceAllString(text, "N")
	}
	return text
}

func (p *pairing) match(t *testing.T, ours, theirs float64) {
	t.Helper()
	x, y := uint64(ours), uint64(theirs)
	if known, ok := p.indexes[x]; ok && known != y {
		p.fail(t, fmt.Sprintf("index %d was %d before and is %d now", x, known, y))
	}
	p.indexes[x] = y
}

// checkOrder wants what is older for one peer to be older for the other.
func (p *pairing) checkOrder(t *testing.T) {
	t.Helper()
	var order []uint64
	for x := range p.indexes {
		order = append(order, x)
	}
	slices.Sort(order)
	for i := 1; i < len(order); i++ {
		if a, b := p.indexes[order[i-1]], p.indexes[order[i]]; a >= b {
			t.Errorf("indexes %d and %d are %d and %d of Consul", order[i-1], order[i], a, b)
		}
	}
}

func (p *pairing) count(method, path string, a answer) {
	kind := method + " kv"
	if _, rest, ok := strings.Cut(path, "?"); ok {
		kind += " " + rest
	}
	if !strings.HasPrefix(path, "/v1/kv/") {
		kind = method + " " + strings.TrimSuffix(path, "%S")
	}
	outcome := fmt.Sprint(a.status)
	if a.body == "true" || a.body == "false" {
		outcome = a.body
	}
	p.outcomes[kind+": "+outcome]++
}

// checkVariety wants that the requests met all kinds of answers: else they
// compare little.
func (p *pairing) checkVariety(t *testing.T) {
	t.Helper()
	for _, want := range []string{
		"GET kv: 200", "GET kv: 404", "GET kv recurse: 200", "GET kv recurse: 404", "GET kv keys: 200",
		"PUT kv: true", "PUT kv cas=%I: true", "PUT kv cas=%I: false", "PUT kv acquire=%S: true",
		"PUT kv acquire=%S: false", "PUT kv acquire=%S: 500", "PUT kv release=%S: true", "PUT kv release=%S: false",
		"DELETE kv recurse: true", "DELETE kv cas=%I: true", "DELETE kv cas=%I: false",
		"PUT /v1/txn: 200", "PUT /v1/txn: 409", "PUT /v1/session/destroy/: true",
		"PUT /v1/session/renew/: 200", "PUT /v1/session/renew/: 404", "GET /v1/session/list: 200",
	} {
		if p.outcomes[want] == 0 {
			t.Errorf("no request ended as %q; the outcomes were %v", want, p.outcomes)
		}
	}
}

func (p *pairing) fail(t *testing.T, why string) {
	t.Helper()
	from := max(0, len(p.log)-40)
	t.Fatalf("%s, after:\n%s", why, strings.Join(p.log[from:], "\n"))
}
