package render_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"hadrain/internal/kv"
	"hadrain/internal/statusjson"
	"hadrain/internal/testpeer"
)

// An answer is what a server says in the place of Consul.
type answer struct {
	body   string
	header map[string]string // over those of a good answer; "": none
}

func pair(key, value string) string {
	text, _ := json.Marshal(map[string]any{"Key": "hadrain/state/" + key, "Value": []byte(value)})
	return string(text)
}

var (
	sentinel = pair(".hadrain", kv.FormatSentinel(idA))
	good     = answer{body: "[" + sentinel + "," + pair("a", "drain") + "]"}

	// refusals has an answer for each reason to refuse one.
	refusals = map[string]answer{
		kv.NotConsul:     {good.body, map[string]string{"X-Consul-Index": ""}},
		kv.NoLeader:      {good.body, map[string]string{"X-Consul-Knownleader": "false"}},
		kv.ACLFiltered:   {good.body, map[string]string{"X-Consul-Results-Filtered-By-Acls": "true"}},
		kv.ACLAnonymous:  {"[]", map[string]string{"X-Consul-Default-Acl-Policy": "deny"}},
		kv.NoSentinel:    {"[" + pair("a", "ready") + "]", nil},
		kv.WrongSentinel: {"[" + pair(".hadrain", kv.FormatSentinel(idB)) + "]", nil},
		kv.TooManyKeys:   {"[" + sentinel + "," + pair("a", "ready") + "," + pair("b", "ready") + "]", nil},
		kv.TooLarge:      {"[" + sentinel + "," + pair("a", "ready # "+strings.Repeat("x", 2000)) + "]", nil},
		kv.Malformed:     {"[" + sentinel + ",", nil},
	}
)

// refusalRig is a rig on a server that answers as it is told to.
type refusalRig struct {
	*rig
	says atomic.Pointer[answer]
	url  string // of render
}

func newRefusalRig(t *testing.T, reason string) *refusalRig {
	t.Helper()
	r := &refusalRig{rig: newRig(t)}
	r.says.Store(&good)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		says := r.says.Load()
		for key, value := range map[string]string{"X-Consul-Index": "5", "X-Consul-Knownleader": "true", "X-Consul-Lastcontact": "0"} {
			w.Header().Set(key, value)
		}
		for key, value := range says.header {
			w.Header().Set(key, value)
		}
		fmt.Fprint(w, says.body)
	}))
	t.Cleanup(server.Close)
	r.url = r.serve()
	r.cfg.Consul = kv.Config{Address: server.URL, MaxBytes: 1500, Token: "t"}
	r.cfg.MaxKeys = 1
	if reason == kv.ACLAnonymous {
		r.cfg.Consul.Token = ""
	}
	return r
}

// refuse has two or more reads refused, and then good ones accepted.
func (r *refusalRig) refuse(reason string) {
	r.t.Helper()
	says, first := refusals[reason], r.refused(reason)
	r.says.Store(&says)
	testpeer.WaitFor(r.t, "reads to be refused", func() (bool, string) {
		return r.refused(reason) >= first+2, r.log.String()
	})
	status := r.status()
	if status.Refused == nil || status.Refused.Reason != reason || status.Refused.Message == "" || status.Refused.Since.IsZero() {
		r.t.Errorf("the status says %+v, want %s", status.Refused, reason)
	}
	if info, err := os.Stat(r.cfg.State); err != nil || info.ModTime().After(status.Refused.Since) {
		r.t.Errorf("the file: %v, %v, want that its age grows since %s", info, err, status.Refused.Since)
	}
	r.says.Store(&good)
	testpeer.WaitFor(r.t, "reads to be accepted", func() (bool, string) { return r.status().Refused == nil, r.log.String() })
}

func (r *refusalRig) status() (status statusjson.Render) {
	r.t.Helper()
	_, body := fetch(r.t, r.url+"/status.json")
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		r.t.Fatal(err)
	}
	return status
}

// refused returns how many reads were refused for reason; -1: there is no such
// series.
func (r *refusalRig) refused(reason string) (n int) {
	r.t.Helper()
	_, body := fetch(r.t, r.url+"/metrics")
	_, rest, _ := strings.Cut(body, `hadrain_render_refused_reads_total{reason="`+reason+`"} `)
	if _, err := fmt.Sscan(rest, &n); err != nil {
		return -1
	}
	return n
}

// Whatever the reason: the file stays and grows old, the reason is a label and
// in the status, and the log has a line for each change, not for each read.
func TestEachRefusal(t *testing.T) {
	for reason := range refusals {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := newRefusalRig(t, reason)
			r.start()
			r.want("a drain")
			content, err := os.ReadFile(r.cfg.State)
			if err != nil {
				t.Fatal(err)
			}
			r.refuse(reason)
			if n := r.log.Count("reason=" + reason); n != 1 || r.log.Count("read refused, keeping the state") != 1 {
				t.Errorf("%d lines, want one:\n%s", n, r.log)
			}
			if n := r.log.Count("accepted again"); n != 1 {
				t.Errorf("%d lines of the end, want one:\n%s", n, r.log)
			}
			if now, err := os.ReadFile(r.cfg.State); err != nil || string(now) != string(content) {
				t.Errorf("the file changed: %v\n%s", err, now)
			}
		})
	}
}

// The table above has all of them.
func TestRefusalsAreComplete(t *testing.T) {
	r := newListRig(t)
	r.start()
	r.wantLog("in sync")
	_, body := fetch(t, r.url+"/metrics")
	reasons := regexp.MustCompile(`\nhadrain_render_refused_reads_total\{reason="(\w+)"\}`).FindAllStringSubmatch(body, -1)
	if len(reasons) != len(refusals) {
		t.Errorf("%d reasons are served, and %d are tested", len(reasons), len(refusals))
	}
	for _, reason := range reasons {
		if _, ok := refusals[reason[1]]; !ok {
			t.Errorf("%s is not tested", reason[1])
		}
	}
}
