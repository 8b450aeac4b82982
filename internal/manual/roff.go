package manual

import (
	"fmt"
	"strings"
)

// roff builds the text of a page in the man macros, see groff_man(7).
type roff struct{ strings.Builder }

// macro writes a request with its arguments in quotes.
func (r *roff) macro(name string, args ...string) {
	r.WriteString("." + name)
	for _, arg := range args {
		r.WriteString(` "` + escape(arg) + `"`)
	}
	r.WriteByte('\n')
}

// line writes a line of running text, which may hold inline markup already.
func (r *roff) line(text string) {
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	r.WriteString(text + "\n")
}

// item writes a tag, which is marked up, and what is said of it, which is not.
func (r *roff) item(tag string, lines ...string) {
	r.macro("TP")
	r.line(tag)
	for i, text := range lines {
		if i > 0 {
			r.macro("br")
		}
		r.line(escape(text))
	}
}

// text writes prose as --help shows it: paragraphs are filled, and lines that
// are indented, such as the tables in our help, stay as they are.
func (r *roff) text(prose string) {
	literal, paragraph := false, false
	for line := range strings.Lines(strings.TrimRight(prose, "\n")) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, " ")
		if literal && !indented {
			r.closeLiteral()
			literal = false
		}
		switch {
		case line == "":
			paragraph = false
		case indented:
			if !literal {
				r.openLiteral()
				literal = true
			}
			r.line(escape(strings.TrimPrefix(line, "  ")))
			paragraph = true
		default:
			if !paragraph {
				r.macro("PP")
				paragraph = true
			}
			r.line(escape(line))
		}
	}
	if literal {
		r.closeLiteral()
	}
}

func (r *roff) openLiteral()  { r.WriteString(".PP\n.RS 2\n.nf\n") }
func (r *roff) closeLiteral() { r.WriteString(".fi\n.RE\n") }

var escapes = strings.NewReplacer(
	`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`,
)

// escape makes text stand for itself: what is to be typed keeps its hyphens and
// quotes when it is copied out of a page.
func escape(text string) string {
	var b strings.Builder
	for _, c := range escapes.Replace(text) {
		if c < 0x80 {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, c)
		}
	}
	return b.String()
}

func bold(text string) string   { return `\fB` + escape(text) + `\fR` }
func italic(text string) string { return `\fI` + escape(text) + `\fR` }
