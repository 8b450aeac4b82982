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
	form = q.Form
	for i := 0; ; i++ {
		key := q.Next()
		if len(key) == 0 {
			return Answer{Reply: desired.Ready.Reply(form), Kind: Ready, Key: -1}
		}
		if state, ok := lookup(key); ok {
			return Answer{Reply: state.Reply(form), Kind: kindOf(state), Key: i}
		}
	}
}

func kindOf(s desired.State) Kind {
	switch s {
	case desired.Ready:
		return Ready
	case desired.Drain:
		return Drain
	case desired.Maint:
		return Maint
	case desired.Hold:
		return Hold
	}
	return Weight
}
