package render_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"hadrain/internal/render"
	"hadrain/internal/testpeer"
)

// template writes a template into the rig's directory and has render make
// "out" of it.
func (r *rig) template(text, command string) (destination string) {
	r.t.Helper()
	dir := filepath.Dir(r.cfg.State)
	source := filepath.Join(dir, "source.tmpl")
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	destination = filepath.Join(dir, "out")
	r.cfg.Templates = []render.Template{{Source: source, Destination: destination, Command: command}}
	return destination
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	testpeer.WaitFor(t, path+" to hold "+want, func() (bool, string) {
		data, err := os.ReadFile(path)
		if want == "" {
			return errors.Is(err, os.ErrNotExist), string(data)
		}
		return string(data) == want, string(data)
	})
}

func TestFurtherTemplate(t *testing.T) {
	r := newRig(t)
	out := r.template(`{{ desired "web/a" "canary" }} {{ desired "web/a canary" }} {{ range tree prefix }}{{ .Key }}={{ .Value }};{{ end }}`, "")
	r.cfg.State = ""
	r.start()
	wantFile(t, out, "ready ready .hadrain=v1 id="+idA+";")
	r.put("canary", "drain # x")
	wantFile(t, out, "drain drain .hadrain=v1 id="+idA+";canary=drain # x;")
	r.put("web/a", "50%")
	wantFile(t, out, "50% 50% .hadrain=v1 id="+idA+";canary=drain # x;web/a=50%;")
}

func TestCommandDecides(t *testing.T) {
	r := newRig(t)
	dir := filepath.Dir(r.cfg.State)
	verdict, ran := filepath.Join(dir, "verdict"), filepath.Join(dir, "ran")
	out := r.template(`{{ desired "a" }}`, "cat "+filepath.Join(dir, "out")+" >>"+ran+"; test ! -e "+verdict+" || { echo no such thing >&2; exit 3; }")
	r.put("a", "drain")
	r.start()
	wantFile(t, out, "drain")
	wantFile(t, ran, "drain")
	wantFile(t, filepath.Join(dir, ".out.pending"), "") // the command has ended

	// Refused: what was there before is put back, and the state file goes on.
	if err := os.WriteFile(verdict, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.put("a", "maint")
	r.want("a maint")
	r.wantLog("no such thing")
	wantFile(t, out, "drain")
	wantFile(t, ran, "drainmaint")

	// Tried again on the next change.
	if err := os.Remove(verdict); err != nil {
		t.Fatal(err)
	}
	r.put("b", "drain")
	wantFile(t, out, "maint")
	wantFile(t, ran, "drainmaintmaint")
	r.wantLog("applied again")
	left, err := filepath.Glob(filepath.Join(dir, ".out.[^l]*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// The first file ever is removed again if its command fails.
func TestCommandRefusesTheFirstFile(t *testing.T) {
	r := newRig(t)
	out := r.template(`x`, "false")
	r.start()
	r.wantLog("applying a template failed")
	wantFile(t, out, "")
}

// Stopped, or crashed, between the rename and the verdict: the next start runs
// the command again, although the file says already what it should.
func TestVerdictPendingAcrossRestarts(t *testing.T) {
	r := newRig(t)
	dir := filepath.Dir(r.cfg.State)
	started, verdict := filepath.Join(dir, "started"), filepath.Join(dir, "verdict")
	if err := os.WriteFile(filepath.Join(dir, "out"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := r.template(`{{ desired "a" }}`, "echo x >>"+started+"; test -e "+verdict+" && exit 1; exec tail -f /dev/null")
	r.put("a", "drain")
	r.start()
	wantFile(t, started, "x\n")
	r.put("a", "maint") // a command that hangs does not hold up the state file
	r.want("a maint")
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, out, "drain")
	if err := os.WriteFile(verdict, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.put("a", "drain")
	r.start()
	wantFile(t, started, "x\nx\n")
	wantFile(t, out, "old")
}

func TestTemplateMistakes(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"syntax":           {"a\n{{ if }}\n", "source.tmpl:2: missing value for if"},
		"unknown function": {"{{ nope }}", "source.tmpl:1:3: there is no function nope"},
		"not of sprig":     {"\n" + `{{ sprig_env "HOME" }}`, "source.tmpl:2:3: there is no function sprig_env"},
		"outside":          {"\n" + `{{ file "/etc/passwd" }}`, "source.tmpl:2:3: the function file reaches outside"},
		"environment":      {`{{ env "HOME" }}`, "the function env reaches outside"},
		"not reached":      {`{{ range tree prefix }}{{ if false }}{{ with 1 }}{{ else }}{{ print (secret "a").Data }}{{ end }}{{ end }}{{ end }}`, "the function secret does not work here"},
		"nested":           {`{{ define "x" }}{{ service "web" }}{{ end }}{{ executeTemplate "x" }}`, "the function service does not work here"},
		"another key":      {"{{ 1 }}\n" + `{{ key "other/key" }}`, `source.tmpl:2:3: it asks for "other/key", but only the keys under hadrain/state/ are read`},
		"another prefix":   {`{{ range tree "hadrain/state" }}{{ end }}`, `it asks for "hadrain/state"`},
		"empty":            {"", "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.template(tc.text, "")
			err := render.Run(t.Context(), r.cfg, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run() = %v, want %q", err, tc.want)
			}
		})
	}
}

// What a template asks for may be known only when it is executed.
func TestTemplateAsksForSomethingElse(t *testing.T) {
	r := newRig(t)
	r.template(`{{ print "other/" "key" | key }}`, "")
	r.start()
	r.wantLog("only the keys under hadrain/state/ are read")
}

// The functions of keys answer as those of consul-template do.
func TestFunctionsOfKeys(t *testing.T) {
	r := newRig(t)
	out := r.template(`{{ key "hadrain/state/a" }} {{ key "/hadrain/state/nope" }} {{ keyExists "hadrain/state/web/x" }} `+
		`{{ keyExists "hadrain/state/web" }} {{ keyOrDefault "hadrain/state/nope" "otherwise" }}`+
		`{{ range ls prefix }} {{ .Key }}{{ end }};{{ range tree "hadrain/state/web" }} {{ .Key }}={{ .Value }}{{ end }};`+
		`{{ range safeLs "hadrain/state/web/" }} {{ .Key }}{{ end }};{{ range tree "hadrain/state/nope" }}{{ end }}`, "")
	for key, value := range map[string]string{"a": "drain", "web/": "", "web/x": "maint", "web/y/z": "50%", "webby": "hold"} {
		r.put(key, value)
	}
	r.start()
	wantFile(t, out, "drain  true false otherwise .hadrain a webby; x=maint y/z=50% by=hold; x;")

	if err := os.WriteFile(r.cfg.Templates[0].Source, []byte(`{{ range safeTree "hadrain/state/nope" }}{{ end }}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.wantLog(`there is no key under`)
}

func TestAllow(t *testing.T) {
	r := newRig(t)
	beside := filepath.Join(filepath.Dir(r.cfg.State), "beside")
	if err := os.WriteFile(beside, []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HADRAIN_TEST_ALLOW", "value")
	out := r.template(`{{ file "`+beside+`" }} {{ env "HADRAIN_TEST_ALLOW" }}`, "")
	r.cfg.Templates[0].Allow = []string{"file"}
	if err := render.Run(t.Context(), r.cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "the function env reaches outside") {
		t.Errorf("Run() with file allowed = %v, want env refused", err)
	}
	r.cfg.Templates[0].Allow = []string{"file", "env"}
	r.start()
	wantFile(t, out, "content value")

	r.cfg.Templates[0].Allow = []string{"secret"}
	if err := r.cfg.Check(); err == nil || !strings.Contains(err.Error(), `allowing the function "secret"`) {
		t.Errorf("Check() = %v, want that secret cannot be allowed", err)
	}
}

// A command that hangs is killed with what it started; the state file goes on.
func TestCommandThatHangs(t *testing.T) {
	r := newRig(t)
	dir := filepath.Dir(r.cfg.State)
	started := filepath.Join(dir, "started")
	out := r.template(`{{ desired "a" }}`, "tail -f /dev/null & echo $! >>"+started+"; echo stuck >&2; wait")
	r.cfg.Templates[0].Timeout = 300 * time.Millisecond
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	r.wantLog("it ran longer than 300ms: stuck")
	wantFile(t, out, "")
	testpeer.WaitFor(t, "what the command started to be gone", func() (bool, string) {
		data, err := os.ReadFile(started)
		if err != nil {
			t.Fatal(err)
		}
		pid := strings.TrimSpace(string(data))
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z "), pid + " runs"
	})
	r.put("a", "maint")
	testpeer.WaitFor(t, "another try at the next change", func() (bool, string) {
		data, err := os.ReadFile(started)
		return strings.Count(string(data), "\n") == 2, fmt.Sprint(string(data), err)
	})
	r.want("a maint")
}

func TestParseTemplate(t *testing.T) {
	for text, want := range map[string]render.Template{
		"a:b":        {Source: "a", Destination: "b"},
		"a:b:c -d:e": {Source: "a", Destination: "b", Command: "c -d:e"},
	} {
		if got, err := render.ParseTemplate(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseTemplate(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a", "a:", ":b", ":b:c"} {
		if got, err := render.ParseTemplate(text); err == nil {
			t.Errorf("ParseTemplate(%q) = %+v, want an error", text, got)
		}
	}
}

// A line can be left as it is, also after a restart and when somebody edited it.
func TestCurrentLine(t *testing.T) {
	r := newRig(t)
	out := r.template(`{{ range $k := split " " "ab a" }}{{ $s := desired $k }}`+
		`{{ if eq $s "hold" }}{{ or (current (print $k " ")) "none" }}{{ else }}{{ $k }} is {{ $s }}{{ end }}{{ "\n" }}{{ end }}`, "")
	r.put("ab", "drain")
	r.put("a", "hold")
	r.start()
	wantFile(t, out, "ab is drain\nnone\n")
	r.put("a", "50%")
	wantFile(t, out, "ab is drain\na is 50%\n")
	if err := os.WriteFile(out, []byte("ab is drain\n  a by hand\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.put("a", "hold")
	r.put("ab", "maint")
	wantFile(t, out, "ab is maint\na by hand\n")
}
