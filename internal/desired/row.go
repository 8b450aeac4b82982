package desired

import "strings"

// A Row is one key of the state as a load balancer holds it.
type Row struct {
	Key   string
	State State
	// Note is the note behind the value, [Printable] and without white space
	// around it. Empty if there is none, or if the value was rejected.
	Note string
	// Rejected says why the value in Consul is not the one in State, in one
	// printable piece. Empty if the value was accepted.
	Rejected string
}

// unsetMark ends the reason of a rejected value with nothing to keep.
const unsetMark = "; on hold"

// RejectedState returns the state that a row has by the word of its line and
// the reason for which its value was rejected: they tell [Unset] from [Hold].
func RejectedState(s State, rejected string) State {
	if s == Hold && strings.HasSuffix(rejected, unsetMark) {
		return Unset
	}
	return s
}

// Accept makes the row of a key from its raw value. A value that [ParseValue]
// refuses is rejected: the row keeps the state of last, the row that the key
// had before, so that a typo cannot put a drained server back in rotation. A
// key that had none (known is false) is [Unset].
func Accept(key, raw string, last Row, known bool) Row {
	value, err := ParseValue(raw)
	if err == nil {
		return Row{Key: key, State: value.State, Note: Printable(value.Note)}
	}
	// What ends the reason is never cut off: it is read back.
	reason := Printable(err.Error())
	if !known || last.State == Unset {
		return Row{Key: key, State: Unset, Rejected: reason + unsetMark}
	}
	return Row{Key: key, State: last.State, Rejected: reason + "; keeping " + last.State.String()}
}
