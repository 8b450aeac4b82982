package desired

// A Form says how a reply is put, for rows that need more or less than usual.
// The zero value is the usual form. Forms combine with |.
type Form uint8

const (
	// Up puts the health word "up" before ready, drain and maint. HAProxy needs
	// it for servers added at run time, whose agent health starts at 0
	// (src/server.c, srv_settings_cpy is skipped for dynamic servers). It is not
	// the default because it resets the error counter of "observe".
	Up Form = 1 << iota
	// NoWeight leaves the percentage out of ready, drain and maint, for rows
	// whose weight somebody else manages. A desired N% is still sent.
	NoWeight

	forms = 1 << iota
)

// Words that HAProxy does not know: it changes nothing and shows them to people
// in last_agt. Each is a whole reply.
const (
	// ReplyUnsynced answers while the responder has no state.
	ReplyUnsynced = "unsynced\n"
	// ReplyNoNewline answers a question that came without its newline: half a
	// line could be another key.
	ReplyNoNewline = "no-newline\n"
)

// replies holds every reply, so that answering allocates nothing.
var replies = makeReplies()

func makeReplies() (all [forms][maxState + 1]string) {
	for form := range Form(forms) {
		for state := Ready; state <= maxState; state++ {
			all[form][state] = makeReply(state, form)
		}
	}
	return all
}

func makeReply(s State, f Form) string {
	reply := s.String()
	switch s {
	case Hold, Unset:
		return reply + "\n"
	case Ready, Drain, Maint:
		if f&NoWeight == 0 {
			reply += " 100%"
		}
	default:
		reply = "ready " + reply
	}
	if f&Up != 0 {
		reply = "up " + reply
	}
	return reply + "\n"
}

// Reply returns the whole line that tells HAProxy to put a server into s,
// newline included. It allocates nothing.
func (s State) Reply(f Form) string {
	return replies[f&(forms-1)][min(s, maxState)]
}

// Resolve returns the state of the first of keys that has one, and that key.
// A key that is [Unset] has one only if none behind it has. If none has one it
// returns Ready and "": a server that nobody spoke about is in rotation.
func Resolve(keys []string, lookup func(key string) (State, bool)) (State, string) {
	held := ""
	for _, key := range keys {
		state, ok := lookup(key)
		switch {
		case ok && state != Unset:
			return state, key
		case ok && held == "":
			held = key
		}
	}
	if held != "" {
		return Unset, held
	}
	return Ready, ""
}
