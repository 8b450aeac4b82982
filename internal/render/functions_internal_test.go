package render

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every function that this version of consul-template has is in one list, and
// the lists hold no other. One that fails here is new: look at what it does.
func TestEveryFunctionIsKnown(t *testing.T) {
	found := libraryFunctions(t)
	if len(found) < 80 {
		t.Fatalf("found %d functions of consul-template: this test does not see them", len(found))
	}
	lists := words(computing + " " + reading + " " + outside + " " + elsewhere)
	for name := range found {
		if !lists[name] {
			t.Errorf("consul-template has the function %s, which is in no list", name)
		}
		if n := count(name); n != 1 {
			t.Errorf("the function %s is in %d lists, want 1", name, n)
		}
	}
	for name := range lists {
		if !found[name] {
			t.Errorf("consul-template has no function %s", name)
		}
	}
}

func count(name string) (n int) {
	for _, list := range []string{computing, reading, outside, elsewhere, ours, builtin} {
		if words(list)[name] {
			n++
		}
	}
	return n
}

// libraryFunctions reads the names out of the library's source: it exports none.
func libraryFunctions(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/hashicorp/consul-template/template").Output()
	if err != nil {
		t.Fatalf("looking for consul-template: %v", err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(out)), "template.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found, hermetic := map[string]bool{}, false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "funcMap" {
				names(t, n, found)
			}
		case *ast.SelectorExpr:
			if base, ok := n.X.(*ast.Ident); ok && base.Name == "sprig" && n.Sel.Name != "HermeticTxtFuncMap" {
				t.Errorf("consul-template uses sprig.%s: not all of its functions are hermetic", n.Sel.Name)
			} else if ok && base.Name == "sprig" {
				hermetic = true
			}
		}
		return true
	})
	if !hermetic {
		t.Error("consul-template does not use sprig any more, or otherwise")
	}
	return found
}

func names(t *testing.T, f *ast.FuncDecl, found map[string]bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := pair.Key.(*ast.BasicLit); ok && key.Kind == token.STRING {
			name, err := strconv.Unquote(key.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = true
		}
		return true
	})
}
