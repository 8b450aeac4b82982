package haproxy_test

import (
	"strings"
	"testing"
	"time"

	"hadrain/internal/haproxy"
)

func TestParseStat(t *testing.T) {
	rows, err := haproxy.ParseStat(captured(t, "show_stat_2.6.txt"))
	if err != nil {
		t.Fatal(err)
	}
	byKey := make(map[string]haproxy.Stat)
	for _, s := range rows {
		byKey[s.Key()] = s
	}
	if len(rows) != 8 || len(byKey) != 8 {
		t.Fatalf("%d rows, %d keys, want 8", len(rows), len(byKey))
	}
	for key, want := range map[string]haproxy.Stat{
		"fe/FRONTEND": {Kind: haproxy.StatFrontend, Status: "OPEN", AgentHealth: -1},
		"web/BACKEND": {Kind: haproxy.StatBackend, Status: "UP", Weight: 151, Since: 3 * time.Second, AgentHealth: -1},
		"web/web-01": {
			Kind: haproxy.StatServer, Status: "no check", Weight: 100, Since: 3 * time.Second,
			AgentStatus: "L7OK", LastAgent: `via agent : up (by "alice", chg-1)`, AgentDesc: "Layer7 check passed", AgentHealth: 1,
		},
		"web/web-02": {
			Kind: haproxy.StatServer, Status: "no check", Weight: 50, Since: 3 * time.Second,
			AgentStatus: "CHECKED", AgentDesc: "No status change", AgentDuration: 801 * time.Millisecond, AgentHealth: 1,
		},
		"web/web-03": {
			Kind: haproxy.StatServer, Status: "MAINT", Weight: 100, Since: 3 * time.Second,
			AgentStatus: "CHECKED", AgentDesc: "No status change", AgentHealth: 1,
		},
		"web/off": {
			Kind: haproxy.StatServer, Status: "MAINT", Weight: 1, Since: 3 * time.Second,
			AgentStatus: "L7TOUT", AgentRunning: true, AgentDesc: "Layer7 timeout", AgentDuration: time.Second, AgentHealth: 1,
		},
		"web/plain": {Kind: haproxy.StatServer, Status: "no check", Weight: 1, Since: 3 * time.Second, AgentHealth: -1},
	} {
		want.Proxy, want.Name, _ = strings.Cut(key, "/")
		want.Throttle = 100
		if got := byKey[key]; got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", key, got, want)
		}
	}
}

func TestStatByName(t *testing.T) {
	const text = "# type,rate,stot,scur,weight,status,svname,pxname,throttle\n" +
		"2,7,41,3,13,DRAIN (agent),s1,b1,25\n"
	rows, err := haproxy.ParseStat(text)
	if err != nil {
		t.Fatal(err)
	}
	want := haproxy.Stat{
		Proxy: "b1", Name: "s1", Kind: haproxy.StatServer, Status: "DRAIN (agent)", Weight: 13, Throttle: 25,
		Sessions: 3, SessionsTotal: 41, Rate: 7, AgentHealth: -1,
	}
	if len(rows) != 1 || rows[0] != want || rows[0].State() != "DRAIN" {
		t.Errorf("got %+v, want %+v", rows, want)
	}
}

func TestStatErrors(t *testing.T) {
	good := captured(t, "show_stat_2.6.txt")
	for name, c := range map[string]struct{ text, want string }{
		"empty":        {"", "want the names of the columns"},
		"other answer": {"1\n# be_id\n", `first line "1": want the names`},
		"missing":      {strings.NewReplacer(",scur,", ",x,", ",status,", ",y,").Replace(good), "missing columns status, scur"},
		"short row":    {good + "web,web-09,0\n", "ends before column status"},
		"not a number": {strings.Replace(good, "no check,50,", "no check,5O,", 1), `line 4: column weight: strconv.Atoi: parsing "5O"`},
		"open quote":   {good + `web,"web-09` + "\n", "extraneous or missing"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := haproxy.ParseStat(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("rows %v, error %v; want an error with %q", rows, err, c.want)
			}
		})
	}
}

func TestParseInfo(t *testing.T) {
	got, err := haproxy.ParseInfo(captured(t, "show_info_2.6.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != "2.6.12-1+deb12u4" || got.PID <= 1 || got.Stopping || got.Node != "vm" || got.Uptime <= 0 {
		t.Errorf("got %+v", got)
	}
	for text, want := range map[string]string{
		"":                          "missing lines Version, Pid",
		"Version: 2.6\n":            "missing lines Pid",
		"Version: 2.6\nPid: none\n": `line Pid: "none": want a process number`,
		"Version: 2.6\nPid: 0\n":    `line Pid: "0": want a process number`,
	} {
		if info, err := haproxy.ParseInfo(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, error %v; want an error with %q", text, info, err, want)
		}
	}
	if stopping, err := haproxy.ParseInfo("Version: 3\nPid: 7\nStopping: 1\n"); err != nil || !stopping.Stopping {
		t.Errorf("old worker: %+v, %v", stopping, err)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add(captured(f, "show_stat_2.6.txt"))
	f.Add("# pxname,svname,status,weight,scur,stot,rate,type\nb,\"s\",UP,1,0,0,0,2\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := haproxy.ParseStat(text)
		if err != nil {
			return
		}
		for _, s := range rows {
			if strings.HasPrefix(s.AgentStatus, "* ") && !s.AgentRunning {
				t.Fatalf("mark of a running check left in %+v", s)
			}
			if strings.Contains(s.State(), " ") {
				t.Fatalf("state of %+v has a blank", s)
			}
		}
	})
}

func FuzzParseInfo(f *testing.F) {
	f.Add(captured(f, "show_info_2.6.txt"))
	f.Fuzz(func(t *testing.T, text string) {
		if info, err := haproxy.ParseInfo(text); err == nil && (info.PID <= 0 || info.Version == "") {
			t.Fatalf("accepted %+v", info)
		}
	})
}
