package renderd

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/render"
)

func TestReadTemplates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "templates.yml")
	for text, want := range map[string]string{
		"":                                       "there are none in its list",
		"templates:\n  - sourc: a\n":             path + ":2: unknown key sourc",
		"templates: []\nmore: 1\n":               path + ":2: unknown key more",
		"templates:\n - source: a\n   source: b": path + ":3: ",
		"templates:\n  - {source: a}\n":          "template 1: want source and destination",
		"templates:\n  - {source: a, destination: b, timeout: soon}\n": path + ":2: cannot unmarshal",
		"templates:\n  - {source: a, destination: b, timeout: 30}\n":   "timeout 30ns: want a number with a unit",
		"templates: 5\n":                      path + ":1: cannot unmarshal",
		"[]":                                  path + ":1: cannot unmarshal",
		"templates:\n  - a: [\n":              path + ":",
		"templates: []\n---\ntemplates: []\n": "want one document",
		"templates:\n - source: a\n destination: b": path + ":",
	} {
		write(t, path, text)
		if got, err := readTemplates(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "renderd.") {
			t.Errorf("%q: %+v, %v, want an error with %q", text, got, err, want)
		}
	}
	write(t, path, "templates:\n- source: a\n  destination: b\n- source: c\n  destination: d\n  command: e:f\n  timeout: 5s\n  allow: [env, file]\n")
	want := []render.Template{
		{Source: "a", Destination: "b"},
		{Source: "c", Destination: "d", Command: "e:f", Timeout: 5 * time.Second, Allow: []string{"env", "file"}},
	}
	if got, err := readTemplates(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("readTemplates() = %+v, %v, want %+v", got, err, want)
	}
	if _, err := readTemplates(path + ".not"); err == nil {
		t.Error("a file that is not there is taken")
	}
	if err := syscall.Mkfifo(path+".pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readTemplates(path + ".pipe"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
}

// Templates of the flag and of the file are made one list, which is checked as
// one.
func TestTemplatesOfBoth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "templates.yml")
	write(t, path, "templates:\n- {source: a, destination: same}\n")
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--templates", path, "--template", "b:same", "--state", filepath.Join(t.TempDir(), "state")})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "same is written already") {
		t.Errorf("two templates for one file: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
