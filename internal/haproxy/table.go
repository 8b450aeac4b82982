package haproxy

import (
	"fmt"
	"strconv"
	"strings"
)

// header maps the names of a table's columns to their positions.
type header map[string]int

// newHeader reads the names and fails with all the needed ones that are missing.
func newHeader(names, needed []string) (header, error) {
	h := make(header, len(names))
	for i, name := range names {
		// The first of two columns with one name wins, so that a later
		// version cannot shadow a column we know.
		if _, ok := h[name]; !ok {
			h[name] = i
		}
	}
	var missing []string
	for _, name := range needed {
		if _, ok := h[name]; !ok {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("missing columns %s", strings.Join(missing, ", "))
	}
	return h, nil
}

// row is one line of a table. The first number that does not parse is kept in
// err, so that a row is read field by field and checked once.
type row struct {
	header header
	fields []string
	err    error
}

// text returns a field, or "" when the version has no such column.
func (r *row) text(name string) string {
	i, ok := r.header[name]
	if !ok || i >= len(r.fields) {
		return ""
	}
	return r.fields[i]
}

// number returns a field as an integer, or absent when it is empty.
func (r *row) number(name string, absent int) int {
	s := r.text(name)
	if s == "" || s == "-" {
		return absent
	}
	n, err := strconv.Atoi(s)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("column %s: %w", name, err)
	}
	return n
}

// bits returns a field that HAProxy prints as a decimal bit mask.
func (r *row) bits(name string) uint64 {
	n := r.number(name, 0)
	if n < 0 && r.err == nil {
		r.err = fmt.Errorf("column %s: negative bit mask %d", name, n)
	}
	return uint64(max(n, 0))
}

// word returns a field of which "-" means that there is none.
func (r *row) word(name string) string {
	if s := r.text(name); s != "-" {
		return s
	}
	return ""
}
