package statefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hadrain/internal/desired"
)

// Head is what the first line of a state file says.
type Head struct {
	Root     string    // KV root, e.g. "hadrain"; no white space
	ID       string    // id of the sentinel; no white space
	Index    uint64    // Consul's index of the read it was made from
	Rendered time.Time // when keys or index last changed; UTC, to the second
	Host     string    // who rendered it; no white space
}

// A File is one state file. Whoever holds one must not change it: readers share it.
type File struct {
	Head
	Rows    []desired.Row // sorted by Key, without duplicates
	Skipped []Skipped     // keys that cannot travel in agent-send
}

// Skipped is a key of the prefix that cannot be a row.
type Skipped struct {
	Key    string // as in Consul, any bytes; cut to 256 bytes in a file
	Reason string // printable
}

// Content returns the checksum over the key lines, as in the last line of the
// file: lower-case hex.
func (f *File) Content() string {
	h := sha256.New()
	width := f.Width()
	var line []byte
	for _, row := range f.Rows {
		line = appendLine(line[:0], row, width)
		h.Write(append(line, '\n'))
	}
	return hex.EncodeToString(h.Sum(nil))
}

const (
	magic      = "# hadrain state v1"
	skippedTag = "# skipped "
	endTag     = "# end "
	// maxWidth bounds the padding of short keys, so that one long key does not
	// blow up a file of 100,000.
	maxWidth   = 48
	stateWidth = 7
	// lineExtra is about what a line holds beside key and comment.
	lineExtra = 16
)

// Header returns the first line, without its newline.
func (h *Head) Header() string {
	return magic + " root=" + h.Root + " id=" + h.ID + " index=" + strconv.FormatUint(h.Index, 10) +
		" rendered=" + h.Rendered.UTC().Format(time.RFC3339) + " host=" + h.Host
}

// Width returns the width of the key column, in bytes.
func (f *File) Width() int {
	width := 0
	for _, row := range f.Rows {
		width = max(width, min(len(row.Key), maxWidth))
	}
	return width
}

// Lines returns the lines of all rows, each with its newline.
func (f *File) Lines() string {
	width, size := f.Width(), 0
	for _, row := range f.Rows {
		size += max(width, len(row.Key)) + len(row.Note) + len(row.Rejected) + lineExtra
	}
	var b strings.Builder
	b.Grow(size)
	var line []byte
	for _, row := range f.Rows {
		line = append(appendLine(line[:0], row, width), '\n')
		b.Write(line)
	}
	return b.String()
}

// Line returns the line of one row, its key padded to width, without its newline.
func Line(row desired.Row, width int) string {
	return string(appendLine(nil, row, width))
}

func appendLine(b []byte, row desired.Row, width int) []byte {
	state := row.State.String()
	b = append(b, row.Key...)
	b = appendSpaces(b, width-len(row.Key)+2)
	b = append(b, state...)
	if comment := comment(row); comment != "" {
		b = appendSpaces(b, stateWidth-len(state)+2)
		b = append(b, "# "...)
		b = append(b, comment...)
	}
	return b
}

func appendSpaces(b []byte, n int) []byte {
	const spaces = "                                                                "
	return append(b, spaces[:max(n, 2)]...)
}

const (
	rejectedMark = "rejected "
	// noteMark keeps a note that begins like a mark from being read as one.
	noteMark = "note: "
)

// comment returns what stands behind the # of a row.
func comment(row desired.Row) string {
	switch {
	case row.Rejected != "":
		return rejectedMark + row.Rejected
	case strings.HasPrefix(row.Note, rejectedMark), strings.HasPrefix(row.Note, noteMark):
		return noteMark + row.Note
	default:
		return row.Note
	}
}

// SkippedLine returns the comment that lists a skipped key, without its newline.
func SkippedLine(s Skipped) string {
	key := s.Key
	if len(key) > desired.MaxKey {
		key = key[:desired.MaxKey]
	}
	return skippedTag + strconv.QuoteToASCII(key) + ": " + s.Reason
}

// Seal appends the last line to the other lines of a file, each of which ends
// in a newline: the header, the rows, then what was skipped.
func Seal(body []byte) []byte {
	rows := body[min(len(body), bytes.IndexByte(body, '\n')+1):]
	if bytes.HasPrefix(rows, []byte("#")) {
		rows = nil
	} else if at := bytes.Index(rows, []byte("\n#")); at >= 0 {
		rows = rows[:at+1]
	}
	return append(body, endLine(bytes.Count(rows, []byte("\n")), sha256.Sum256(rows), sha256.Sum256(body))...)
}

func endLine(keys int, content, whole [sha256.Size]byte) string {
	return fmt.Sprintf("%skeys=%d content=%x sha256=%x\n", endTag, keys, content, whole)
}
