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

	"hadrain/internal/desired"
)

// Parse reads a whole state file. It refuses a file that was cut, edited or
// written by something else; the error says what is wrong and on which line.
// The File shares memory with data, which must not change afterwards.
func Parse(data []byte) (*File, error) {
	body, err := checkSeal(data)
	if err != nil {
		return nil, err
	}
	// Rows are cut out of one string: a file of 100,000 keys is one allocation
	// for the text, not one for each key.
	text := unsafe.String(unsafe.SliceData(body), len(body))
	first, text, _ := strings.Cut(text, "\n")
	f, err := parseHeader(first)
	if err != nil {
		return nil, err
	}
	f.Rows = make([]desired.Row, 0, strings.Count(text, "\n"))
	for n := 2; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if err := f.parseLine(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return f, nil
}

func lineEnd(b []byte, at int) int {
	if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(b)
}

// checkSeal verifies the last line of data and returns the lines before it.
func checkSeal(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, errors.New("empty file")
	}
	if data[len(data)-1] != '\n' {
		return nil, errors.New("cut short: no newline at the end")
	}
	start := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	body, last := data[:start], data[start:]
	if !bytes.HasPrefix(last, []byte(endTag)) {
		return nil, errors.New("cut short: the last line is not the end line")
	}
	_, claimed, _ := bytes.Cut(last, []byte(" sha256="))
	whole := sha256.Sum256(body)
	if hex.EncodeToString(whole[:]) != strings.TrimSuffix(string(claimed), "\n") {
		return nil, errors.New("changed since it was written: sha256 does not match")
	}
	keys, content := sum(body)
	want := fmt.Sprintf("%skeys=%d content=%x sha256=%x\n", endTag, keys, content, whole)
	if string(last) != want {
		return nil, errors.New("changed since it was written: the end line does not match")
	}
	return body, nil
}

func parseHeader(line string) (*File, error) {
	rest, ok := strings.CutPrefix(line, magic+" ")
	if !ok {
		return nil, fmt.Errorf("line 1: not a state file, want it to start with %q", magic)
	}
	var f File
	words := strings.Split(rest, " ")
	for i, name := range []string{"root", "id", "index", "rendered", "host"} {
		if i >= len(words) || !strings.HasPrefix(words[i], name+"=") {
			return nil, fmt.Errorf("line 1: no %s= in its place", name)
		}
		if err := f.setHeader(name, words[i][len(name)+1:]); err != nil {
			return nil, fmt.Errorf("line 1: %s: %w", name, err)
		}
	}
	if f.Header() != line {
		return nil, errors.New("line 1: not as a state file writes it")
	}
	return &f, nil
}

func (f *File) setHeader(name, value string) (err error) {
	switch name {
	case "root":
		f.Root = value
	case "id":
		f.ID = value
	case "index":
		f.Index, err = strconv.ParseUint(value, 10, 64)
	case "rendered":
		f.Rendered, err = time.Parse(time.RFC3339, value)
	case "host":
		f.Host = value
	}
	return err
}

func (f *File) parseLine(line string) error {
	if rest, ok := strings.CutPrefix(line, skippedTag); ok {
		return f.parseSkipped(rest)
	}
	row, err := parseRow(line)
	if err != nil {
		return err
	}
	if n := len(f.Rows); n > 0 && f.Rows[n-1].Key >= row.Key {
		return fmt.Errorf("key %q is not in order", row.Key)
	}
	if len(f.Skipped) > 0 {
		return fmt.Errorf("key %q after the skipped keys", row.Key)
	}
	f.Rows = append(f.Rows, row)
	return nil
}

func parseRow(line string) (desired.Row, error) {
	key, rest, _ := strings.Cut(line, " ")
	if err := desired.CheckKey(key); err != nil {
		return desired.Row{}, fmt.Errorf("key %q: %w", key, err)
	}
	word, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	state, err := desired.ParseState(word)
	if err != nil {
		return desired.Row{}, fmt.Errorf("key %q: %w", key, err)
	}
	row := desired.Row{Key: key, State: state}
	if rest = strings.TrimLeft(rest, " "); rest == "" {
		return row, nil
	}
	comment, ok := strings.CutPrefix(rest, "# ")
	if !ok {
		return desired.Row{}, fmt.Errorf("key %q: text after the state", key)
	}
	if rejected, ok := strings.CutPrefix(comment, rejectedMark); ok {
		row.Rejected = rejected
	} else {
		row.Note = strings.TrimPrefix(comment, noteMark)
	}
	return row, nil
}

func (f *File) parseSkipped(rest string) error {
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
	f.Skipped = append(f.Skipped, Skipped{Key: key, Reason: reason})
	return nil
}
