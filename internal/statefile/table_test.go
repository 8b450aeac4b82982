package statefile_test

import (
	"slices"
	"testing"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

// A table says of each row what the file says that was formatted.
func TestTableIsTheFile(t *testing.T) {
	for name, f := range map[string]*statefile.File{"sample": sample(), "empty": {}, "large": big(1000)} {
		f.Rows = append(f.Rows, desired.Accept("web/zz", "oops", desired.Row{}, false))
		table, err := statefile.ParseTable(statefiletest.Format(f), nil)
		must(t, err)
		if got := slices.Collect(table.Rows()); !slices.Equal(got, f.Rows) || table.Len() != len(f.Rows) {
			t.Errorf("%s: %d rows %v, want %v", name, table.Len(), got, f.Rows)
		}
		for i, row := range f.Rows {
			if table.Key(i) != row.Key || table.State(i) != row.State {
				t.Errorf("%s: row %d is %q %v, want %q %v", name, i, table.Key(i), table.State(i), row.Key, row.State)
			}
		}
		if table.Content() != f.Content() || table.Header() != f.Header() || len(table.Skipped) != len(f.Skipped) {
			t.Errorf("%s: %q, content %s, %d skipped", name, table.Header(), table.Content(), len(table.Skipped))
		}
	}
}

func TestSameRows(t *testing.T) {
	read := func(change func(f *statefile.File)) *statefile.Table {
		f := sample()
		change(f)
		table, err := statefile.ParseTable(statefiletest.Format(f), nil)
		must(t, err)
		return table
	}
	before := read(func(*statefile.File) {})
	if !before.SameRows(read(func(f *statefile.File) { f.Index++; f.Skipped = nil })) {
		t.Error("another index makes other rows")
	}
	if before.SameRows(read(func(f *statefile.File) { f.Rows[1].State = desired.Maint })) {
		t.Error("another state makes no other rows")
	}
}
