package policy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// exits are the calls that end the process, so that no deferred function runs
// and nothing but a subprocess can test the caller. Only commands may.
var exits = []string{"os.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln", "syscall.Exit"}

func TestSource(t *testing.T) {
	root := testpeer.Root(t)
	checked := 0
	for _, path := range goFiles(t, root) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, complaint := range complaints(path, file) {
			t.Error(complaint)
		}
	}
	if checked < 10 {
		t.Errorf("checked %d files: this test does not see the repository", checked)
	}
}

// complaints returns what the file at path, relative to the root, does that no
// such file may.
func complaints(path string, file *ast.File) []string {
	test := strings.HasSuffix(path, "_test.go")
	command := file.Name.Name == "main"
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch name := callee(file, call); {
		case test && name == "time.Sleep":
			found = append(found, fmt.Sprintf("%s calls time.Sleep: wait for the event, see testpeer.WaitFor", path))
		case !command && !test && slices.Contains(exits, name):
			found = append(found, fmt.Sprintf("%s calls %s: return an error, the command exits", path, name))
		}
		return true
	})
	return found
}

// callee returns "import/path.Name" for a call of an imported function, else "".
func callee(file *ast.File, call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	base, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == base.Name {
			return path + "." + selector.Sel.Name
		}
	}
	return ""
}

// goFiles returns the Go files of the repository, relative to its root.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			relative, err := filepath.Rel(root, path)
			files = append(files, relative)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatalf("listing Go files: %v", err)
	}
	return files
}

func TestComplaints(t *testing.T) {
	for name, tc := range map[string]struct {
		path, source string
		want         int
	}{
		"sleep in a test":         {"a/a_test.go", `package a; import "time"; func f() { time.Sleep(1) }`, 1},
		"sleep by another name":   {"a/a_test.go", `package a; import clock "time"; func f() { clock.Sleep(1) }`, 1},
		"sleep elsewhere":         {"a/a.go", `package a; import "time"; func f() { time.Sleep(1) }`, 0},
		"exit in a library":       {"a/a.go", `package a; import "os"; func f() { os.Exit(1) }`, 1},
		"fatal in a library":      {"a/a.go", `package a; import "log"; func f() { log.Fatalf("") }`, 1},
		"exit in a command":       {"cmd/a/main.go", `package main; import "os"; func f() { os.Exit(1) }`, 0},
		"exit of something else":  {"a/a.go", `package a; import "x/os2"; func f() { os2.Exit(1) }`, 0},
		"a method called Exit":    {"a/a.go", `package a; func f(os T) { os.Exit(1) }`, 0},
		"exit in a test's helper": {"a/a_test.go", `package a; import "os"; func f() { os.Exit(1) }`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), tc.path, tc.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := complaints(tc.path, file); len(got) != tc.want {
				t.Errorf("complaints = %q, want %d", got, tc.want)
			}
		})
	}
}
