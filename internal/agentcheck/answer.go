package agentcheck

import "hadrain/internal/desired"

// A Kind is what an answer says, without the number of a weight: one value for
// each label in the metrics.
type Kind uint8

// The kinds of answers. The last three change nothing in HAProxy, and neither
// does Hold.
const (
	Ready Kind = iota
	Weight
	Drain
	Maint
	Hold
	Unsynced
	NoNewline
	Refused

	Kinds = iota // how many there are
)

var kindNames = [Kinds]string{"ready", "weight", "drain", "maint", "hold", "unsynced", "no_newline", "refused"}

// String returns the kind as a label: lower case, underscores.
func (k Kind) String() string { return kindNames[k] }

// ReplyRefused answers what is no question. HAProxy does not know the word: it
// changes nothing and shows it to people in last_agt.
const ReplyRefused = "refused\n"

// An Answer is what one question gets.
type Answer struct {
	Reply string // the whole line, newline included
	Kind  Kind
	// Key is the place of the key that answered among the keys of the question,
	// -1 if none has a value.
	Key int
	// Index is that of the state it was answered from; for whoever answers.
	Index uint64
}

// Respond answers a line, in the given form unless the line says otherwise.
// lookup returns the state of a key; without one, nil, every question is
// answered "unsynced". It allocates nothing.
func Respond(line []byte, form desired.Form, lookup func(key []byte) (desired.State, bool)) Answer {
	q, ok := ParseQuestion(line, form)
	switch {
	case !ok:
		return refused
	case lookup == nil:
		return Answer{Reply: desired.ReplyUnsynced, Kind: Unsynced, Key: -1}
	}
	state, at := resolve(q, lookup)
	return Answer{Reply: state.Reply(q.Form), Kind: kindOf(state), Key: at}
}

// resolve is [desired.Resolve] without allocations. at is the place of the key
// that answers, -1 if none does.
func resolve(q Question, lookup func(key []byte) (desired.State, bool)) (state desired.State, at int) {
	state, at = desired.Ready, -1
	for i, key := 0, q.Next(); len(key) > 0; i, key = i+1, q.Next() {
		found, ok := lookup(key)
		switch {
		case ok && found != desired.Unset:
			return found, i
		case ok && at < 0:
			state, at = found, i
		}
	}
	return state, at
}

func kindOf(s desired.State) Kind {
	switch s {
	case desired.Ready:
		return Ready
	case desired.Drain:
		return Drain
	case desired.Maint:
		return Maint
	case desired.Hold, desired.Unset:
		return Hold
	}
	return Weight
}
