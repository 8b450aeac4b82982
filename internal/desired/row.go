package desired

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

// Accept makes the row of a key from its raw value. A value that [ParseValue]
// refuses is rejected: the row keeps the state of last, the row that the key
// had before, so that a typo cannot put a drained server back in rotation. A
// key that had none (known is false) is held.
func Accept(key, raw string, last Row, known bool) Row {
	value, err := ParseValue(raw)
	if err == nil {
		return Row{Key: key, State: value.State, Note: Printable(value.Note)}
	}
	if !known || last.State == Hold {
		return Row{Key: key, State: Hold, Rejected: Printable(err.Error() + "; on hold")}
	}
	return Row{Key: key, State: last.State, Rejected: Printable(err.Error() + "; keeping " + last.State.String())}
}
