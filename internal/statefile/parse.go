package statefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// Parse reads a whole state file. It refuses a file that was cut, edited or
// written by something else; the error says what is wrong and on which line.
// The File shares memory with data, which must not change afterwards.
func Parse(data []byte) (*File, error) {
	t, err := parse(data, nil)
	if err != nil {
		return nil, err
	}
	return t.File(), nil
}

// ParseTable is [Parse] for those who look up keys. last is the table before it,
// nil if there is none: what is the same in both is not worked out again.
func ParseTable(data []byte, last *Table) (*Table, error) {
	t, err := parse(data, last)
	if err != nil {
		return nil, err
	}
	t.index()
	return t, nil
}

func parse(data []byte, last *Table) (*Table, error) {
	body, seal, err := checkSeal(data)
	if err != nil {
		return nil, err
	}
	// Rows are cut out of one string: a file of 100,000 keys is one allocation
	// for the text, not one for each key.
	text := unsafe.String(unsafe.SliceData(body), len(body))
	first, text, _ := strings.Cut(text, "\n")
	var t Table
	if t.Head, err = parseHeader(first); err != nil {
		return nil, err
	}
	rest, err := t.parseRows(text, last)
	if err != nil {
		return nil, err
	}
	rows := body[len(first)+1 : len(body)-len(rest)]
	if t.content, err = seal.check(t.Len(), rows); err != nil {
		return nil, err
	}
	return &t, t.parseSkips(rest)
}

// parseSkips reads the lines behind the rows.
func (t *Table) parseSkips(text string) error {
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if err := t.parseSkipped(line); err != nil {
			return fmt.Errorf("line %d: %w", 2+t.Len()+len(t.Skipped), err)
		}
	}
	return nil
}

// seal is the last line of a file, and the checksum that it must have.
type seal struct {
	line  []byte
	whole [sha256.Size]byte
}

// checkSeal verifies the last line of data, as far as it is about all lines
// before it, and returns these: each ends in a newline.
func checkSeal(data []byte) ([]byte, seal, error) {
	if len(data) == 0 {
		return nil, seal{}, errors.New("empty file")
	}
	if data[len(data)-1] != '\n' {
		return nil, seal{}, errors.New("cut short: no newline at the end")
	}
	start := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	body, last := data[:start], data[start:]
	if !bytes.HasPrefix(last, []byte(endTag)) {
		return nil, seal{}, errors.New("cut short: the last line is not the end line")
	}
	_, claimed, _ := bytes.Cut(last, []byte(" sha256="))
	whole := sha256.Sum256(body)
	if hex.EncodeToString(whole[:]) != strings.TrimSuffix(string(claimed), "\n") {
		return nil, seal{}, errors.New("changed since it was written: sha256 does not match")
	}
	return body, seal{last, whole}, nil
}

// check verifies the rest of the last line: it speaks of the given key lines. It
// returns their checksum.
func (s seal) check(keys int, rows []byte) (content string, err error) {
	sum := sha256.Sum256(rows)
	if string(s.line) != endLine(keys, sum, s.whole) {
		return "", errors.New("changed since it was written: the end line does not match")
	}
	return hex.EncodeToString(sum[:]), nil
}

func parseHeader(line string) (h Head, err error) {
	rest, ok := strings.CutPrefix(line, magic+" ")
	if !ok {
		return h, fmt.Errorf("line 1: not a state file, want it to start with %q", magic)
	}
	words := strings.Split(rest, " ")
	for i, name := range []string{"root", "id", "index", "rendered", "host"} {
		if i >= len(words) || !strings.HasPrefix(words[i], name+"=") {
			return h, fmt.Errorf("line 1: no %s= in its place", name)
		}
		if err := h.set(name, words[i][len(name)+1:]); err != nil {
			return h, fmt.Errorf("line 1: %s: %w", name, err)
		}
	}
	if h.Header() != line {
		return h, errors.New("line 1: not as a state file writes it")
	}
	return h, nil
}

func (h *Head) set(name, value string) (err error) {
	switch name {
	case "root":
		h.Root = value
	case "id":
		h.ID = value
	case "index":
		h.Index, err = strconv.ParseUint(value, 10, 64)
	case "rendered":
		h.Rendered, err = time.Parse(time.RFC3339, value)
	case "host":
		h.Host = value
	}
	return err
}

func (t *Table) parseSkipped(line string) error {
	rest, ok := strings.CutPrefix(line, skippedTag)
	if !ok {
		return fmt.Errorf("%.40q: want only skipped keys behind the rows", line)
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return fmt.Errorf("skipped key: %w", err)
	}
	key, err := strconv.Unquote(quoted)
	if err != nil {
		return fmt.Errorf("skipped key: %w", err)
	}
	reason, ok := strings.CutPrefix(rest[len(quoted):], ": ")
	if !ok {
		return fmt.Errorf("skipped key %s: no reason", quoted)
	}
	t.Skipped = append(t.Skipped, Skipped{Key: key, Reason: reason})
	return nil
}
