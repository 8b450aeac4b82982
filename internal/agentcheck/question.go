package agentcheck

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"hadrain/internal/desired"
)

// Limits of a question.
const (
	MaxQuestion = 4096 // bytes, newline included
	MaxKeys     = 64
)

// A Question is the keys of one line and how their answer is to be put.
type Question struct {
	Form desired.Form
	keys []byte // one or more keys, white space between them
}

// ParseQuestion reads a line without its end. Unless the line says otherwise,
// the answer has the given form. It reports false for a line that gets no
// answer: no key, more than [MaxKeys] or [MaxQuestion], or a word that starts
// like an option and is not one of those in front of the keys.
func ParseQuestion(line []byte, form desired.Form) (Question, bool) {
	q := Question{Form: form}
	if len(line) > MaxQuestion {
		return q, false
	}
	word, rest := nextWord(line)
	for ; isOption(word); word, rest = nextWord(rest) {
		if !q.setOption(word) {
			return q, false
		}
	}
	if len(word) == 0 {
		return q, false
	}
	q.keys = line[len(line)-len(rest)-len(word):]
	count := 0
	for ; len(word) > 0; word, rest = nextWord(rest) {
		count++
		if count > MaxKeys || isOption(word) {
			return q, false
		}
	}
	return q, true
}

// Next takes the first key off the question. It is empty when none is left.
func (q *Question) Next() []byte {
	var key []byte
	key, q.keys = nextWord(q.keys)
	return key
}

func isOption(word []byte) bool {
	return len(word) > 0 && (word[0] == '+' || word[0] == '-') // no key starts like this
}

func (q *Question) setOption(word []byte) bool {
	switch string(word) {
	case "+up":
		q.Form |= desired.Up
	case "-up":
		q.Form &^= desired.Up
	case "-weight":
		q.Form |= desired.NoWeight
	default:
		return false
	}
	return true
}

// nextWord cuts the first word off line, as strings.Fields would. Both results
// lie in line, rest at its end; word is empty if only white space was left.
func nextWord(line []byte) (word, rest []byte) {
	start := 0
	for start < len(line) {
		size := space(line[start:])
		if size == 0 {
			break
		}
		start += size
	}
	end := start
	for end < len(line) && (plain(line[end]) || space(line[end:]) == 0) {
		end++
	}
	return line[start:end], line[end:]
}

// plain reports whether c stands in a key, for sure: the quick way.
func plain(c byte) bool { return c > ' ' && c < utf8.RuneSelf }

// space returns the length of the white space character that b begins with, 0
// if it begins with none.
func space(b []byte) int {
	switch c := b[0]; {
	case c == ' ' || '\t' <= c && c <= '\r':
		return 1
	case c < utf8.RuneSelf:
		return 0
	}
	if r, size := utf8.DecodeRune(b); unicode.IsSpace(r) {
		return size
	}
	return 0
}

// cutLine returns the question at the front of what a peer sent, without its
// end, and whether it has ended.
func cutLine(sent []byte) (line []byte, whole bool) {
	if before, _, ok := bytes.Cut(sent, []byte{'\n'}); ok {
		return before, true
	}
	if line, whole = bytes.CutSuffix(sent, literalNewline); whole {
		line = bytes.TrimSuffix(line, literalReturn)
	}
	return line, whole
}

// literalNewline and literalReturn are what HAProxy sends for \n and \r in
// single quotes.
var (
	literalNewline = []byte(`\n`)
	literalReturn  = []byte(`\r`)
)
