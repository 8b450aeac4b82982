package statefile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

func TestLookupIsAMap(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 1000, 4096} {
		want := map[string]desired.State{}
		f := &statefile.File{}
		for i := range n {
			row := desired.Row{Key: fmt.Sprintf("web/%05d", i*3), State: desired.State(i % 4)}
			f.Rows = append(f.Rows, row)
			want[row.Key] = row.State
		}
		table, err := statefile.ParseTable(statefiletest.Format(f), nil)
		must(t, err)
		for i := range 3*n + 3 {
			key := fmt.Sprintf("web/%05d", i)
			got, ok := table.Lookup([]byte(key))
			if state, there := want[key]; got != state || ok != there {
				t.Fatalf("with %d rows: Lookup(%q) = %v, %v, want %v, %v", n, key, got, ok, state, there)
			}
		}
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	table, err := statefile.ParseTable(statefiletest.Format(sample()), nil)
	must(t, err)
	there, not := []byte("canary"), []byte("web/a")
	if n := testing.AllocsPerRun(100, func() { table.Lookup(there); table.Lookup(not) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// A table says the same whatever table came before it: any keys added, removed
// and changed, also at both ends and all of them.
func TestTableAfterTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var last *statefile.Table
	for n := range 500 {
		f := sample()
		f.Rows = f.Rows[:0]
		share := random.IntN(11)
		for i := range random.IntN(30) {
			if random.IntN(10) < share {
				// Keys of which one begins like the other, and lines of several lengths.
				row := desired.Row{Key: fmt.Sprintf("web/%0*d", 1+i%3, i), State: desired.State(random.IntN(4))}
				f.Rows = append(f.Rows, row, desired.Accept(row.Key+"-", "typo", row, random.IntN(2) > 0))
			}
		}
		slices.SortFunc(f.Rows, func(a, b desired.Row) int { return strings.Compare(a.Key, b.Key) })
		f.Rows = slices.CompactFunc(f.Rows, func(a, b desired.Row) bool { return a.Key == b.Key })
		table, err := statefile.ParseTable(statefiletest.Format(f), last)
		must(t, err)
		if got := slices.Collect(table.Rows()); !slices.Equal(got, f.Rows) {
			t.Fatalf("file %d: %v, want %v", n, got, f.Rows)
		}
		for _, row := range f.Rows {
			if state, ok := table.Lookup([]byte(row.Key)); !ok || state != row.State {
				t.Fatalf("file %d: Lookup(%q) = %v, %v, want %v", n, row.Key, state, ok, row.State)
			}
		}
		if last != nil {
			for row := range last.Rows() {
				_, ok := table.Lookup([]byte(row.Key))
				if there := slices.ContainsFunc(f.Rows, func(r desired.Row) bool { return r.Key == row.Key }); ok != there {
					t.Fatalf("file %d: Lookup(%q), a key of the file before, is %v, want %v", n, row.Key, ok, there)
				}
			}
		}
		last = table
	}
}

// FuzzParseAfter holds what is taken from the file before against what is not.
func FuzzParseAfter(f *testing.F) {
	head := sample().Header() + "\n"
	f.Add("a  ready\nb  drain\n", "a  ready\nb  maint\nc  ready\n")
	f.Add("a  hold    # rejected x; on hold\n", "a  hold    # rejected x\n# skipped \"x y\": z\n")
	f.Add("b  ready\n", "b  ready\nb  ready\na  ready\n")
	f.Fuzz(func(t *testing.T, before, now string) {
		last, err := statefile.ParseTable(statefile.Seal([]byte(head+before)), nil)
		if err != nil {
			return
		}
		data := statefile.Seal([]byte(head + now))
		want, wantErr := statefile.ParseTable(data, nil)
		got, err := statefile.ParseTable(data, last)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("after %q: %v, alone: %v", before, err, wantErr)
		}
		if err != nil {
			return
		}
		if a, b := slices.Collect(got.Rows()), slices.Collect(want.Rows()); !slices.Equal(a, b) {
			t.Fatalf("after %q: %v, alone: %v", before, a, b)
		}
		for row := range want.Rows() {
			if state, ok := got.Lookup([]byte(row.Key)); !ok || state != row.State {
				t.Fatalf("after %q: Lookup(%q) = %v, %v, want %v", before, row.Key, state, ok, row.State)
			}
		}
	})
}
