package statefile

import (
	"iter"
	"strings"

	"hadrain/internal/desired"
)

// A Table is a good state file as it stands: rows are cut out of its text when
// they are asked for. It is for those who look up keys again and again while
// large files come in, such as the responder; a [File] is for the others. It
// does not change.
type Table struct {
	Head
	Skipped []Skipped // keys that cannot travel in agent-send

	content string  // checksum over text
	text    string  // the key lines, each with its newline
	places  []place // of the rows in text
	slots   slots   // of the rows, by key
}

// A place is where a row stands, and what nearly everybody wants of it: small,
// and nothing for the garbage collector to look at.
type place struct {
	start uint32 // of the line; MaxSize fits
	key   uint16 // length
	state desired.State
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.places) }

// Key returns the key of row i: they are sorted, without duplicates.
func (t *Table) Key(i int) string {
	p := t.places[i]
	return t.text[p.start:][:p.key]
}

// State returns the state of row i.
func (t *Table) State(i int) desired.State { return t.places[i].state }

// Row returns row i.
func (t *Table) Row(i int) desired.Row {
	line, _, _ := strings.Cut(t.text[t.places[i].start:], "\n")
	key, state, comment, _ := parseLine(line) // went well when the table was made
	row := desired.Row{Key: key, State: state}
	if rejected, ok := strings.CutPrefix(comment, rejectedMark); ok {
		row.Rejected = rejected
	} else {
		row.Note = strings.TrimPrefix(comment, noteMark)
	}
	return row
}

// Rows returns all rows, sorted by key.
func (t *Table) Rows() iter.Seq[desired.Row] {
	return func(yield func(desired.Row) bool) {
		for i := range t.places {
			if !yield(t.Row(i)) {
				return
			}
		}
	}
}

// SameRows reports whether the key lines of both are the same.
func (t *Table) SameRows(other *Table) bool { return t.text == other.text }

// Content returns the checksum over the key lines, as in the last line of the
// file: lower-case hex.
func (t *Table) Content() string { return t.content }

// File returns the table as a File, which shares its memory.
func (t *Table) File() *File {
	f := &File{Head: t.Head, Rows: make([]desired.Row, 0, t.Len()), Skipped: t.Skipped}
	for row := range t.Rows() {
		f.Rows = append(f.Rows, row)
	}
	return f
}
