// Package statefiletest makes state files for tests.
package statefiletest

import "hadrain/internal/statefile"

// Format returns f as render writes it. It is the reference that the template
// in templates/ is held against.
func Format(f *statefile.File) []byte {
	body := []byte(f.Header() + "\n")
	width := f.Width()
	for _, row := range f.Rows {
		body = append(body, statefile.Line(row, width)+"\n"...)
	}
	for _, skipped := range f.Skipped {
		body = append(body, statefile.SkippedLine(skipped)+"\n"...)
	}
	return statefile.Seal(body)
}
