package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"hadrain/internal/desired"
)

// table is text in columns.
type table struct {
	rows [][]string
}

// add takes cells as they come: what anybody wrote into Consul must not drive a
// terminal.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = escape(cell)
	}
	t.rows = append(t.rows, cells)
}

// escape is [desired.Printable] without its limit.
func escape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		b.WriteString(desired.Printable(text[i : i+size]))
		i += size
	}
	return b.String()
}

// write puts the columns two blanks apart; paint colours a cell once its width
// is known.
func (t *table) write(w io.Writer, paint func(cell string) string) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(paint(cell))
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func plain(cell string) string { return cell }

// painter returns what colours states, if w is a terminal and the user wants
// colours (https://no-color.org).
func painter(w io.Writer) func(string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !terminal(w) {
		return plain
	}
	return paint
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint colours a cell that begins with a state.
func paint(cell string) string {
	code := ""
	switch word, _, _ := strings.Cut(cell, " "); {
	case word == "ready":
		code = "32"
	case word == "drain", word == "hold", strings.HasSuffix(word, "%"):
		code = "33"
	case word == "maint", word == "rejected", word == "unsynced":
		code = "31"
	}
	if code == "" {
		return cell
	}
	return "\x1b[" + code + "m" + cell + "\x1b[0m"
}

// dash stands for nothing in a table.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func timeCell(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// ago says how long before now t was.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return max(now.Sub(t), 0).Round(time.Second).String() + " ago"
}

// names lists at most five of list, and how many there are.
func names(list []string) string {
	const most = 5
	switch {
	case len(list) == 0:
		return "none known"
	case len(list) > most:
		return fmt.Sprintf("%d: %s, ...", len(list), strings.Join(list[:most], ", "))
	}
	return fmt.Sprintf("%d: %s", len(list), strings.Join(list, ", "))
}
