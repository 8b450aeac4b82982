package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	consulapi "github.com/hashicorp/consul/api"
	"github.com/rogpeppe/go-internal/testscript"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
	"hadrain/internal/responder"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/statusjson"
)

// balancer is a load balancer as the CLI sees it: a real responder with a
// state file. What HAProxy and render do, scripts do by ask and render.
type balancer struct {
	state       string // path
	agent, http string // address and URL
}

func startBalancer(env *testscript.Env) (*balancer, error) {
	agent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, agent.Close())
	}
	lb := &balancer{
		state: filepath.Join(env.WorkDir, ".state"), agent: agent.Addr().String(), http: "http://" + web.Addr().String(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- responder.Run(ctx, responder.Config{
			State: lb.state, Agent: []net.Listener{agent}, HTTP: []net.Listener{web},
		}, slog.New(slog.DiscardHandler))
	}()
	env.Defer(func() {
		cancel()
		if err := <-done; err != nil {
			env.T().Log("the responder: ", err)
			env.T().FailNow()
		}
	})
	return lb, nil
}

// ask LINE...: HAProxy asks each line.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: ask LINE...")
	}
	lb := ts.Value(key("lb")).(*balancer)
	for _, line := range args {
		conn, err := net.Dial("tcp", lb.agent)
		ts.Check(err)
		_, err = fmt.Fprintf(conn, "%s\n", line)
		ts.Check(err)
		_, err = bufio.NewReader(conn).ReadString('\n')
		ts.Check(err)
		ts.Check(conn.Close())
		// The answer is counted once it is written, which is after it is read here.
		first := strings.Fields(line)[0]
		lb.await(ts, "the row "+first, func(doc statusjson.Responder) bool {
			return slices.ContainsFunc(doc.Rows, func(row statusjson.Row) bool { return row.Row == first })
		})
	}
}

// render [id=ID] [root=ROOT] [age=DURATION]: the state file follows the store,
// and the responder the file; as one of another Consul, or as an old one.
func renderOnce(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: render [id=ID] [root=ROOT] [age=DURATION]")
	}
	lb := ts.Value(key("lb")).(*balancer)
	pairs, meta, err := store(ts).List("hadrain/state/", &consulapi.QueryOptions{RequireConsistent: true})
	ts.Check(err)
	f := statefile.File{Head: statefile.Head{Root: "hadrain", Index: meta.LastIndex, Rendered: time.Now().UTC().Truncate(time.Second), Host: "lb-1"}}
	for _, p := range pairs {
		if name := strings.TrimPrefix(p.Key, "hadrain/state/"); name != ".hadrain" {
			f.Rows = append(f.Rows, desired.Accept(name, string(p.Value), desired.Row{}, false))
			continue
		}
		f.ID, err = kv.ParseSentinel(string(p.Value))
		ts.Check(err)
	}
	age := override(ts, &f, args)
	ts.Check(statefile.Write(lb.state, statefiletest.Format(&f)))
	read := time.Now().Add(-age)
	ts.Check(os.Chtimes(lb.state, read, read))
	lb.await(ts, "the new state", func(doc statusjson.Responder) bool {
		late := doc.State.Age - age.Seconds()
		return doc.State.Index == f.Index && doc.State.ID == f.ID && doc.State.Root == f.Root && late > -1 && late < 30
	})
}

func override(ts *testscript.TestScript, f *statefile.File, args []string) (age time.Duration) {
	for _, arg := range args {
		var err error
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "id":
			f.ID = value
		case "root":
			f.Root = value
		case "age":
			age, err = time.ParseDuration(value)
		default:
			ts.Fatalf("render: what is %q?", arg)
		}
		ts.Check(err)
	}
	return age
}

// await waits until the responder's status is as it should be.
func (lb *balancer) await(ts *testscript.TestScript, what string, ok func(statusjson.Responder) bool) {
	deadline := time.Now().Add(20 * time.Second)
	for tick := time.Tick(10 * time.Millisecond); time.Now().Before(deadline); <-tick {
		var doc statusjson.Responder
		resp, err := http.Get(lb.http + "/status.json")
		if err != nil {
			continue
		}
		err = json.NewDecoder(resp.Body).Decode(&doc)
		_ = resp.Body.Close()
		if err == nil && ok(doc) {
			return
		}
	}
	ts.Fatalf("waiting for %s at %s: not there after 20 s", what, lb.http)
}
