package desired

import (
	"fmt"
	"strconv"
	"strings"
)

// A State is what an operator wants for a server: one of the constants, or a
// weight in percent made by [Weight]. The zero value is Ready. States are
// comparable with ==; 100% and ready are different states with the same effect.
type State uint8

// The states that are words. A weight of N percent is weight0 + N.
const (
	Ready State = iota // in rotation, weight from the configuration
	Drain              // no new sessions, running ones continue
	Maint              // out of rotation, health checks stopped
	Hold               // leave HAProxy as it is
	// Unset is the state of a key whose only values so far were rejected: there
	// is nothing to keep. It lets the keys behind it answer, as before it was
	// written; where none has a value it is a hold. No value asks for it.
	Unset
	weight0
)

const maxState = weight0 + 100

// want is the vocabulary, as error messages state it.
const want = "want ready, drain, maint, hold or N%"

// Weight returns the state "percent%". percent is 0 to 100.
func Weight(percent int) (State, error) {
	if percent < 0 || percent > 100 {
		return Ready, fmt.Errorf("weight %d%%: want a whole number from 0 to 100", percent)
	}
	return weight0 + State(percent), nil
}

// Percent reports the weight of s in percent, and whether s is a weight.
func (s State) Percent() (int, bool) {
	if s < weight0 || s > maxState {
		return 0, false
	}
	return int(s - weight0), true
}

// String returns the word that [ParseState] takes for s; for Unset that of Hold.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Drain:
		return "drain"
	case Maint:
		return "maint"
	case Hold, Unset:
		return "hold"
	}
	if percent, ok := s.Percent(); ok {
		return strconv.Itoa(percent) + "%"
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}

// ParseState reads one word, in any letter case: ready, drain, maint, hold or
// N%. Health words are refused: whether a server is up belongs to HAProxy's own
// checks. The error names the word and what to write instead.
func ParseState(word string) (State, error) {
	// As state files have it; without this, a large one takes longer.
	if state, ok := parseWord(word); ok {
		return state, nil
	}
	lower := strings.ToLower(word)
	if state, ok := parseWord(lower); ok {
		return state, nil
	}
	switch lower {
	case "up", "down", "fail", "failed", "stopped":
		return Ready, fmt.Errorf("%s: health belongs to HAProxy's own checks; %s", quote(word), want)
	}
	if percent, ok := parsePercent(word); ok {
		return weight0 + State(percent), nil
	}
	return Ready, fmt.Errorf("%s: %s", quote(word), want)
}

func parseWord(lower string) (State, bool) {
	switch lower {
	case "ready":
		return Ready, true
	case "drain":
		return Drain, true
	case "maint":
		return Maint, true
	case "hold":
		return Hold, true
	}
	return Ready, false
}

// parsePercent takes one to three digits and a percent sign, at most 100%.
func parsePercent(word string) (int, bool) {
	digits, ok := strings.CutSuffix(word, "%")
	if !ok || len(digits) < 1 || len(digits) > 3 {
		return 0, false
	}
	n := 0
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, n <= 100
}

// quote shows what somebody wrote in one short printable piece.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
