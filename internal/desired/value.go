package desired

import (
	"errors"
	"strings"
)

// A Value is what stands under a key: a state, and a note for people ("" if
// there is none).
type Value struct {
	State State
	Note  string
}

// white is the white space around a value; blank is what may separate the
// state from the note.
const (
	white = " \t\r\n\v\f"
	blank = " \t"
)

// ParseValue reads "STATE" or "STATE # note". Letter case and white space
// around the value are ignored. Anything else is an error that says what was
// found and what is wanted; such a value is rejected, never guessed at.
func ParseValue(raw string) (Value, error) {
	text := strings.Trim(raw, white)
	if text == "" {
		return Value{}, errors.New("empty value: " + want)
	}
	end := strings.IndexAny(text, white)
	if end < 0 {
		state, err := ParseState(text)
		return Value{State: state}, err
	}
	state, err := ParseState(text[:end])
	if err != nil {
		return Value{}, err
	}
	note, ok := strings.CutPrefix(strings.TrimLeft(text[end:], blank), "#")
	if !ok {
		return Value{}, errors.New(quote(text) + `: text after the state, want "STATE # note"`)
	}
	return Value{State: state, Note: strings.Trim(note, white)}, nil
}

// String returns the value as [ParseValue] reads it.
func (v Value) String() string {
	if v.Note == "" {
		return v.State.String()
	}
	return v.State.String() + " # " + v.Note
}
