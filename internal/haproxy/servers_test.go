package haproxy_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"hadrain/internal/haproxy"
)

// captured reads an answer that HAProxy 2.6.12 gave, byte for byte.
func captured(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseServersState(t *testing.T) {
	rows, err := haproxy.ParseServersState(captured(t, "show_servers_state_2.6.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 6 {
		t.Fatalf("%d rows, want 6", len(rows))
	}
	for i, want := range []struct {
		key               string
		op                haproxy.Op
		admin             haproxy.Admin
		weight, percent   int
		enrolled, enabled bool
	}{
		{"web/web-01", haproxy.OpRunning, 0, 100, 100, true, true},
		{"web/web-02", haproxy.OpRunning, 0, 50, 50, true, true},
		{"web/web-03", haproxy.OpStopped, haproxy.FMAINT, 100, 100, true, true},
		{"web/gke-cny-web", haproxy.OpStopped, haproxy.FDRAIN, 100, 100, true, true},
		{"web/off", haproxy.OpStopped, haproxy.FMAINT | haproxy.CMAINT, 1, 100, true, true},
		{"web/plain", haproxy.OpRunning, 0, 1, 100, false, false},
	} {
		s := rows[i]
		if s.Key() != want.key || s.Op != want.op || s.Admin != want.admin || s.Weight != want.weight ||
			s.Percent() != want.percent || s.Agent.Enrolled() != want.enrolled || s.Agent.Enabled() != want.enabled {
			t.Errorf("row %d: got %+v, want %+v", i, s, want)
		}
	}
	if s := rows[0]; s.Addr != "127.0.0.1" || s.Port != 1 || s.AgentAddr != "127.0.0.1" || s.AgentPort == 0 || s.Since != 3*time.Second {
		t.Errorf("addresses and time: %+v", s)
	}
	if s := rows[5]; s.AgentAddr != "" || s.AgentPort != 0 {
		t.Errorf("agent of a server without one: %+v", s)
	}
}

// TestServersStateByName: columns in another order, with new ones between and
// the optional ones left out, mean the same.
func TestServersStateByName(t *testing.T) {
	const text = "1\n" +
		"# srv_agent_state new_one srv_iweight srv_uweight srv_admin_state srv_op_state srv_name be_name\n" +
		"18 surprise 200 50 24 2 s1 b1\n\n"
	rows, err := haproxy.ParseServersState(text)
	if err != nil {
		t.Fatal(err)
	}
	want := haproxy.ServerState{
		Backend: "b1", Server: "s1", Op: haproxy.OpRunning, Admin: haproxy.FDRAIN | haproxy.IDRAIN,
		Weight: 50, InitialWeight: 200, Agent: haproxy.AgentConfigured | haproxy.AgentMark,
	}
	if len(rows) != 1 || rows[0] != want {
		t.Errorf("got %+v, want %+v", rows, want)
	}
	if rows[0].Percent() != 25 || !rows[0].Agent.Enrolled() || rows[0].Agent.Enabled() {
		t.Errorf("derived values of %+v", rows[0])
	}
}

func TestServersStateErrors(t *testing.T) {
	good := captured(t, "show_servers_state_2.6.txt")
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", `want format version 1`},
		"format":         {strings.Replace(good, "1\n", "2\n", 1), `"2": want format version 1`},
		"no names":       {"1\nb s 1\n", "want the names of the columns"},
		"missing":        {strings.NewReplacer("srv_admin_state", "x", "srv_iweight", "y").Replace(good), "missing columns srv_admin_state, srv_iweight"},
		"short row":      {strings.Replace(good, " 127.0.0.1 2 0 100", " 2 0 100", 1), "line 3: 24 fields for 25 columns"},
		"not a number":   {strings.Replace(good, " 2 0 100 100", " 2 0 1OO 100", 1), `line 3: column srv_uweight: strconv.Atoi: parsing "1OO"`},
		"negative bits":  {strings.Replace(good, " 2 0 100 100", " 2 -1 100 100", 1), "line 3: column srv_admin_state: negative bit mask -1"},
		"help of socket": {"Unknown command. Please enter one of the following\n", "want format version 1"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := haproxy.ParseServersState(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("rows %v, error %v; want an error with %q", rows, err, c.want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		haproxy.Admin(0).String():                     "none",
		(haproxy.FDRAIN | haproxy.IMAINT).String():    "IMAINT|FDRAIN",
		(haproxy.HMAINT | haproxy.Admin(96)).String(): "RMAINT|HMAINT",
		haproxy.Admin(0x81).String():                  "FMAINT|0x80",
		haproxy.OpStarting.String():                   "starting",
		haproxy.Op(9).String():                        "op(9)",
		haproxy.AgentState(22).String():               "configured|enabled|agent",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestAdmin: the masks of include/haproxy/server-t.h, bit by bit.
func TestAdmin(t *testing.T) {
	for bit, want := range map[haproxy.Admin]string{
		haproxy.FMAINT: "maint", haproxy.IMAINT: "maint", haproxy.RMAINT: "maint",
		haproxy.FDRAIN: "drain", haproxy.IDRAIN: "drain",
		haproxy.CMAINT: "", haproxy.HMAINT: "", 0: "",
	} {
		if bit.Maint() != (want == "maint") || bit.Drain() != (want == "drain") {
			t.Errorf("%v: maint %v, drain %v; want %q", bit, bit.Maint(), bit.Drain(), want)
		}
	}
}

func FuzzParseServersState(f *testing.F) {
	f.Add(captured(f, "show_servers_state_2.6.txt"), "x")
	f.Add("1\n# be_name srv_name srv_op_state srv_admin_state srv_uweight srv_iweight srv_agent_state\nb s 2 8 1 1 22\n", "be_name")
	f.Fuzz(func(t *testing.T, text, column string) {
		rows, err := haproxy.ParseServersState(text)
		if err != nil {
			return
		}
		for _, s := range rows {
			_, _, _ = s.Percent(), s.Admin.String(), s.Agent.String()
		}
		if len(strings.Fields(column)) != 1 {
			return
		}
		// A column that a later version appends changes nothing.
		wider, err := haproxy.ParseServersState(appendColumn(text, column))
		if err != nil {
			t.Fatalf("with one more column %q: %v", column, err)
		}
		for i := range rows {
			if rows[i] != wider[i] && !strings.HasPrefix(column, "srv_") {
				t.Fatalf("row %d: %+v became %+v", i, rows[i], wider[i])
			}
		}
	})
}

// appendColumn adds one column to each line of a servers state.
func appendColumn(text, name string) string {
	lines := strings.Split(text, "\n")
	for i := 1; i < len(lines); i++ {
		switch {
		case i == 1:
			lines[i] += " " + name
		case strings.TrimSpace(lines[i]) != "":
			lines[i] += " v"
		}
	}
	return strings.Join(lines, "\n")
}
