package responder

import (
	"fmt"
	"testing"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

func TestIndexIsAMap(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 1000, 4096} {
		want := map[string]desired.State{}
		f := &statefile.File{}
		for i := range n {
			row := desired.Row{Key: fmt.Sprintf("web/%05d", i*3), State: desired.State(i % 4)}
			f.Rows = append(f.Rows, row)
			want[row.Key] = row.State
		}
		x := newIndex(table(t, f))
		for i := range 3*n + 3 {
			key := fmt.Sprintf("web/%05d", i)
			got, ok := x.lookup([]byte(key))
			if state, there := want[key]; got != state || ok != there {
				t.Fatalf("with %d rows: lookup(%q) = %v, %v, want %v, %v", n, key, got, ok, state, there)
			}
		}
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	x := newIndex(table(t, &statefile.File{Rows: []desired.Row{{Key: "canary", State: desired.Drain}}}))
	there, not := []byte("canary"), []byte("web/a")
	if n := testing.AllocsPerRun(100, func() { x.lookup(there); x.lookup(not) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// table is f as it is read from a file.
func table(t *testing.T, f *statefile.File) *statefile.Table {
	t.Helper()
	table, err := statefile.ParseTable(statefiletest.Format(f))
	if err != nil {
		t.Fatal(err)
	}
	return table
}
