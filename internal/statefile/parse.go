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
	body, seal, err := checkSeal(data)
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
	text, err = f.parseRows(text)
	if err != nil {
		return nil, err
	}
	rows := body[len(first)+1 : len(body)-len(text)]
	if err := seal.check(len(f.Rows), rows); err != nil {
		return nil, err
	}
	return f, f.parseSkips(text)
}

// parseRows reads key lines until the first comment, and returns the rest.
func (f *File) parseRows(text string) (rest string, err error) {
	f.Rows = make([]desired.Row, 0, strings.Count(text, "\n"))
	last := ""
	for text != "" && text[0] != '#' {
		end := strings.IndexByte(text, '\n')
		row, err := parseRow(text[:end])
		if err == nil && last >= row.Key {
			err = fmt.Errorf("key %q is not in order", row.Key)
		}
		if err != nil {
			return "", fmt.Errorf("line %d: %w", 2+len(f.Rows), err)
		}
		last = row.Key
		f.Rows = append(f.Rows, row)
		text = text[end+1:]
	}
	return text, nil
}

// parseSkips reads the lines behind the rows.
func (f *File) parseSkips(text string) error {
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if err := f.parseSkipped(line); err != nil {
			return fmt.Errorf("line %d: %w", 2+len(f.Rows)+len(f.Skipped), err)
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

// check verifies the rest of the last line: it speaks of the given key lines.
func (s seal) check(keys int, rows []byte) error {
	if string(s.line) != endLine(keys, sha256.Sum256(rows), s.whole) {
		return errors.New("changed since it was written: the end line does not match")
	}
	return nil
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

func parseRow(line string) (desired.Row, error) {
	key, rest := cutWord(line)
	if err := desired.CheckKey(key); err != nil {
		return desired.Row{}, fmt.Errorf("key %q: %w", key, err)
	}
	word, comment := cutWord(rest)
	state, err := desired.ParseState(word)
	if err != nil {
		return desired.Row{}, fmt.Errorf("key %q: %w", key, err)
	}
	row := desired.Row{Key: key, State: state}
	if comment == "" {
		return row, nil
	}
	comment, ok := strings.CutPrefix(comment, "# ")
	if !ok {
		return desired.Row{}, fmt.Errorf("key %q: text after the state", key)
	}
	if rejected, ok := strings.CutPrefix(comment, rejectedMark); ok {
		row.Rejected, row.State = rejected, desired.RejectedState(state, rejected)
	} else {
		row.Note = strings.TrimPrefix(comment, noteMark)
	}
	return row, nil
}

// cutWord returns what stands before the first run of spaces, and behind it.
func cutWord(text string) (word, rest string) {
	end := strings.IndexByte(text, ' ')
	if end < 0 {
		return text, ""
	}
	start := end + 1
	for start < len(text) && text[start] == ' ' {
		start++
	}
	return text[:end], text[start:]
}

func (f *File) parseSkipped(line string) error {
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
	f.Skipped = append(f.Skipped, Skipped{Key: key, Reason: reason})
	return nil
}
