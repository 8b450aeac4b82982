package desired

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxNote is the greatest length of a note as it is shown, in bytes.
const MaxNote = 200

// A Note is what the CLI writes behind a state, so that whoever reads the raw
// key sees who did it, when and why. Zero fields are left out.
type Note struct {
	By     string    // who
	At     time.Time // when, to the second
	Until  time.Time // when it should be over; zero: open
	Reason string    // why
}

// String returns the note as `by=… at=… until=… reason="…"`, times in UTC.
func (n Note) String() string {
	var words []string
	if n.By != "" {
		words = append(words, "by="+quoteWord(n.By))
	}
	if !n.At.IsZero() {
		words = append(words, "at="+n.At.UTC().Format(time.RFC3339))
	}
	if !n.Until.IsZero() {
		words = append(words, "until="+n.Until.UTC().Format(time.RFC3339))
	}
	if n.Reason != "" {
		words = append(words, "reason="+strconv.Quote(n.Reason))
	}
	return strings.Join(words, " ")
}

func quoteWord(s string) string {
	if q := strconv.Quote(s); strings.ContainsAny(s, blank+"=") || len(q) != len(s)+2 {
		return q
	}
	return s
}

// ParseNote reads what [Note.String] wrote. A note that somebody wrote by hand
// comes back whole as the Reason.
func ParseNote(text string) Note {
	var n Note
	for rest := text; rest != ""; rest = strings.TrimLeft(rest, blank) {
		var ok bool
		if rest, ok = n.parseField(rest); !ok {
			return Note{Reason: text}
		}
	}
	return n
}

// parseField takes one name=value off the front of text.
func (n *Note) parseField(text string) (rest string, ok bool) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return text, false
	}
	value, rest, err := cutWord(rest)
	if err != nil {
		return text, false
	}
	switch name {
	case "by":
		n.By = value
	case "reason":
		n.Reason = value
	case "at":
		n.At, err = time.Parse(time.RFC3339, value)
	case "until":
		n.Until, err = time.Parse(time.RFC3339, value)
	default:
		return text, false
	}
	return rest, err == nil
}

// cutWord takes one word, quoted or not, off the front of text.
func cutWord(text string) (word, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", fmt.Errorf("unquoting %s: %w", text, err)
		}
		word, err = strconv.Unquote(quoted)
		return word, text[len(quoted):], err
	}
	end := strings.IndexAny(text, blank)
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:], nil
}

// Printable returns text as it may be shown in a line of a file or a terminal:
// control and other unprintable characters escaped as in Go, at most [MaxNote]
// bytes, the last three of them "..." if something was cut. It is the identity
// on its own results.
func Printable(text string) string {
	if plain(text) {
		return text // as almost all are
	}
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() <= MaxNote; {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == ' ' || strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[i : i+size])
		} else {
			q := strconv.Quote(text[i : i+size])
			b.WriteString(q[1 : len(q)-1])
		}
		i += size
	}
	return cut(b.String())
}

// plain reports whether text is short, and nothing but printable ASCII.
func plain(text string) bool {
	if len(text) > MaxNote {
		return false
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// cut shortens text to MaxNote bytes between two characters.
func cut(text string) string {
	if len(text) <= MaxNote {
		return text
	}
	const mark = "..."
	end := MaxNote - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
