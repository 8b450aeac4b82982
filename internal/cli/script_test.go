package cli_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"
	"github.com/rogpeppe/go-internal/testscript"

	"hadrain/internal/cli"
	"hadrain/internal/cmdline"
	"hadrain/internal/devstore"
	"hadrain/internal/testpeer"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"hadrain": func() { os.Exit(cmdline.Main(cli.Command())) },
	})
}

// The scripts in testdata, one topic each, against the embedded store.
func TestScripts(t *testing.T) {
	testscript.Run(t, params(t, func(env *testscript.Env) string {
		store := devstore.New()
		server := httptest.NewServer(store)
		env.Defer(func() { server.Close(); store.Close() })
		return server.URL
	}))
}

// Those of the scripts in which the store has a say, against a real Consul, one
// after the other on one server.
func TestScriptsConsul(t *testing.T) {
	consul := testpeer.Consul(t, testpeer.ConsulConfig{})
	kv := consul.Client(t).KV()
	p := params(t, func(*testscript.Env) string {
		if _, err := kv.DeleteTree("", nil); err != nil {
			t.Fatal(err)
		}
		return consul.Addr()
	})
	p.Dir = ""
	for _, name := range []string{"init", "existing", "states", "owner", "select", "mask", "status", "json"} {
		p.Files = append(p.Files, filepath.Join("testdata", name+".txtar"))
	}
	testscript.RunT(serial{t}, p)
}

// serial is a testscript.T whose scripts do not run at the same time.
type serial struct{ *testing.T }

func (serial) Parallel()     {}
func (serial) Verbose() bool { return testing.Verbose() }
func (s serial) Run(name string, run func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { run(serial{t}) })
}

type key string

// params sets up, for each script, a store that start makes and a responder.
func params(t *testing.T, start func(*testscript.Env) string) testscript.Params {
	t.Helper()
	return testscript.Params{
		Dir: "testdata", RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			addr := start(env)
			client, err := consulapi.NewClient(&consulapi.Config{Address: addr})
			if err != nil {
				return err
			}
			lb, err := startBalancer(env)
			if err != nil {
				return err
			}
			env.Values[key("kv")], env.Values[key("lb")] = client.KV(), lb
			env.Setenv("CONSUL_HTTP_ADDR", addr)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each command, otherwise
			env.Setenv("HADRAIN_AS", "alice@bastion")
			env.Setenv("HADRAIN_RESPONDER", lb.http)
			env.Setenv("HADRAIN_ADDR", lb.agent)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "refuses": refuses, "kv": kvCommand, "ask": ask, "render": renderOnce, "golden": golden,
			"http-address": httpAddress,
		},
	}
}

func store(ts *testscript.TestScript) *consulapi.KV { return ts.Value(key("kv")).(*consulapi.KV) }

// exits N COMMAND...: the command ends with exit status N.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// refuses N COMMAND...: the same, and nothing in the store changes.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	before := dump(ts)
	exits(ts, neg, args)
	if after := dump(ts); after != before {
		ts.Fatalf("the store was\n%s\nand is\n%s", before, after)
	}
}

// http-address: HTTP_ADDRESS is where the responder serves HTTP, HOST:PORT.
func httpAddress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: http-address")
	}
	ts.Setenv("HTTP_ADDRESS", strings.TrimPrefix(ts.Getenv("HADRAIN_RESPONDER"), "http://"))
}

// dump returns all that is in the store.
func dump(ts *testscript.TestScript) string {
	pairs, _, err := store(ts).List("", &consulapi.QueryOptions{RequireConsistent: true})
	ts.Check(err)
	var b strings.Builder
	for _, p := range pairs {
		fmt.Fprintf(&b, "%s = %s (%d)\n", p.Key, p.Value, p.ModifyIndex)
	}
	return b.String()
}

// kv put KEY VALUE, kv delete KEY: as somebody without hadrain does.
// kv get KEY: its value becomes the standard output of the script.
// [!] kv has KEY REGEXP: some key that starts with KEY has such a value.
func kvCommand(ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case len(args) == 3 && args[0] == "put" && !neg:
		_, err := store(ts).Put(&consulapi.KVPair{Key: args[1], Value: []byte(args[2])}, nil)
		ts.Check(err)
	case len(args) == 2 && args[0] == "delete" && !neg:
		_, err := store(ts).DeleteTree(args[1], nil)
		ts.Check(err)
	case len(args) == 3 && args[0] == "has":
		found := false
		pairs, _, err := store(ts).List(args[1], &consulapi.QueryOptions{RequireConsistent: true})
		ts.Check(err)
		for _, p := range pairs {
			found = found || regexp.MustCompile(args[2]).Match(p.Value)
		}
		if found == neg {
			ts.Fatalf("a value matching %q under %s: %t, want %t; there is\n%s", args[2], args[1], found, !neg, dump(ts))
		}
	default:
		ts.Fatalf("usage: kv put KEY VALUE, kv delete PREFIX, [!] kv has PREFIX REGEXP")
	}
}

var variable = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`), `"TIME"`},
	{regexp.MustCompile(`at=\d{4}-\d\d-\d\dT[0-9:]+Z`), `at=TIME`},
	{regexp.MustCompile(`until=\d{4}-\d\d-\d\dT[0-9:]+Z`), `until=TIME`},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), `UUID`},
	{regexp.MustCompile(`"index": \d+`), `"index": 1`},
	{regexp.MustCompile(`("(age|interval)_seconds"): [0-9.e-]+`), `$1: 0`},
	{regexp.MustCompile(`"content": "[0-9a-f]{64}"`), `"content": "SHA256"`},
	{regexp.MustCompile(`"host": "[^"]+"`), `"host": "HOST"`},
	{regexp.MustCompile(`"version": "[^"]+"`), `"version": "VERSION"`},
}

// golden FILE: the standard output of the last command is that of the file,
// but for what differs between runs: times, addresses, ids, indexes.
func golden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: golden FILE")
	}
	got := ts.ReadFile("stdout")
	for _, name := range []string{"CONSUL_HTTP_ADDR", "HADRAIN_RESPONDER", "HADRAIN_ADDR", "WORK"} {
		got = strings.ReplaceAll(got, ts.Getenv(name), name)
	}
	for _, v := range variable {
		got = v.pattern.ReplaceAllString(got, v.text)
	}
	if want := ts.ReadFile(args[0]); got != want {
		ts.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}
