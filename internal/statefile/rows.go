package statefile

import (
	"fmt"
	"strings"

	"hadrain/internal/desired"
)

// parseRows reads key lines until the first comment, and returns the rest. A
// line that stands in last as well is known to be good, and so is the order of
// two that follow each other there: from one file to the next, nearly all do.
func (t *Table) parseRows(text string, last *Table) (rest string, err error) {
	t.places = make([]place, 0, strings.Count(text, "\n"))
	known := last.lines()
	start, before, found := 0, "", false
	for start < len(text) && text[start] != '#' {
		p, size, again := known.find(text[start:])
		if !again {
			if p, size, err = parsePlace(text[start:]); err != nil {
				return "", fmt.Errorf("line %d: %w", 2+t.Len(), err)
			}
		}
		p.start = uint32(start)
		key := text[start:][:p.key]
		if !(found && again) && before >= key {
			return "", fmt.Errorf("line %d: key %q is not in order", 2+t.Len(), key)
		}
		if !again {
			known.skip(key)
		}
		t.places = append(t.places, p)
		start, before, found = start+size, key, again
	}
	t.text = text[:start]
	if !known.others && known.at == len(known.places) {
		t.slots = known.slots
	}
	return text[start:], nil
}

// lines walks through the lines of a table, which are in the order of their keys.
type lines struct {
	*Table
	at     int
	others bool // lines that were passed have keys that were not asked for, or the reverse
}

func (t *Table) lines() lines {
	if t == nil {
		t = &Table{}
	}
	return lines{Table: t}
}

// find reports whether text begins with the line at which l stands, and goes to
// the next one if so. size is that of the line, with its newline.
func (l *lines) find(text string) (p place, size int, ok bool) {
	if l.at == len(l.places) {
		return place{}, 0, false
	}
	p = l.places[l.at]
	end := len(l.text)
	if l.at+1 < len(l.places) {
		end = int(l.places[l.at+1].start)
	}
	if line := l.text[p.start:end]; strings.HasPrefix(text, line) {
		l.at++
		return p, len(line), true
	}
	return place{}, 0, false
}

// skip goes to the first line whose key is greater than key.
func (l *lines) skip(key string) {
	l.others = l.others || l.at == len(l.places) || l.Key(l.at) != key
	for l.at < len(l.places) && l.Key(l.at) <= key {
		l.at++
	}
}

// parsePlace reads the first line of text; size is that of the line, with its newline.
func parsePlace(text string) (p place, size int, err error) {
	end := strings.IndexByte(text, '\n')
	key, state, _, err := parseLine(text[:end])
	return place{key: uint16(len(key)), state: state}, end + 1, err
}

// parseLine cuts the line of a row. comment is what stands behind its #, "" if
// nothing does.
func parseLine(line string) (key string, state desired.State, comment string, err error) {
	key, rest := cutWord(line)
	if err := desired.CheckKey(key); err != nil {
		return "", desired.Ready, "", fmt.Errorf("key %q: %w", key, err)
	}
	word, rest := cutWord(rest)
	state, err = desired.ParseState(word)
	if err != nil {
		return "", desired.Ready, "", fmt.Errorf("key %q: %w", key, err)
	}
	if rest == "" {
		return key, state, "", nil
	}
	comment, ok := strings.CutPrefix(rest, "# ")
	if !ok {
		return "", desired.Ready, "", fmt.Errorf("key %q: text after the state", key)
	}
	if rejected, ok := strings.CutPrefix(comment, rejectedMark); ok {
		state = desired.RejectedState(state, rejected)
	}
	return key, state, comment, nil
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
