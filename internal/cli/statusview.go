package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hadrain/internal/desired"
	"hadrain/internal/statusjson"
)

// showStatus prints the tables.
func (a *app) showStatus(cmd *cobra.Command, doc statusDocument) error {
	tell, out := progress{cmd.ErrOrStderr()}, cmd.OutOrStdout()
	for _, r := range doc.Responders {
		if r.Error != "" {
			tell.line("responder %s says nothing (%s): its rows are not shown; --responder names others", r.URL, r.Error)
		}
	}
	tell.warnings(doc.Warnings)
	switch {
	case doc.Error != "": // it follows as the command's error
	case len(doc.Keys) == 0:
		if _, err := fmt.Fprintln(out, "no key has a value"); err != nil {
			return err
		}
	default:
		if err := writeKeys(out, doc.Keys, a.output == "wide"); err != nil {
			return err
		}
	}
	return writeRows(out, doc, a.output == "wide")
}

// writeKeys prints the table of keys, and below it what does not fit there.
func writeKeys(out io.Writer, keys []keyStatus, wide bool) error {
	t := &table{}
	head := []string{"KEY", "STATE", "BY", "SINCE", "UNTIL", "REASON"}
	if wide {
		head = append(head, "INDEX", "MASKS")
	}
	t.add(head...)
	for _, k := range keys {
		until := timeCell(k.Until)
		if k.Overdue {
			until += " overdue"
		}
		cells := []string{k.Key, k.word(), dash(desired.Printable(k.By)), timeCell(k.At), until, dash(desired.Printable(k.Reason))}
		if wide {
			cells = append(cells, fmt.Sprint(k.index), dash(strings.Join(k.Masks, ",")))
		}
		t.add(cells...)
	}
	if err := t.write(out, painter(out)); err != nil {
		return err
	}
	return writeKeyNotes(out, keys)
}

func writeKeyNotes(out io.Writer, keys []keyStatus) error {
	for _, k := range keys {
		line := ""
		switch {
		case k.Skipped != "":
			line = fmt.Sprintf("%s: no load balancer follows this key (%s); delete it with consul kv delete", k.Key, k.Skipped)
		case k.Rejected != "":
			line = fmt.Sprintf("%s: rejected %s; load balancers keep the state before it", k.Key, k.Rejected)
		case k.unsaid != "":
			line = k.unsaid
		case len(k.Masks) > 0:
			line = fmt.Sprintf("%s: ignores %s, because its own key has a value", k.Key, strings.Join(k.Masks, ", "))
		default:
			continue
		}
		if _, err := fmt.Fprintln(out, "note: "+escape(line)); err != nil {
			return err
		}
	}
	return nil
}

func (k *keyStatus) word() string {
	switch {
	case k.Skipped != "":
		return "skipped"
	case k.Rejected != "":
		return "rejected"
	case k.State == nil:
		return "-"
	}
	return *k.State
}

// writeRows prints what the load balancers are told.
func writeRows(out io.Writer, doc statusDocument, wide bool) error {
	for _, r := range doc.Responders {
		if r.State == nil {
			continue
		}
		if _, err := fmt.Fprintf(out, "\nload balancer %s: %s\n", escape(r.Host), escape(stateLine(r.State, doc))); err != nil {
			return err
		}
		t := &table{}
		t.add("ROW", "ANSWER", "FROM", "ASKED", "KEYS")
		for _, row := range doc.Rows {
			if row.Responder != r.URL {
				continue
			}
			asked := ago(doc.At, row.Asked)
			if row.Silent {
				asked += " (silent)"
			}
			t.add(row.Row.Row, row.Answer, dash(row.Key), asked, strings.Join(row.Keys, " "))
		}
		switch {
		case len(t.rows) > 1:
		case doc.named:
			t.rows[0] = []string{"no row with these keys is asked for"}
		default:
			t.rows[0] = []string{"no row is asked for"}
		}
		if err := t.write(out, painter(out)); err != nil {
			return err
		}
	}
	return nil
}

func stateLine(s *statusjson.State, doc statusDocument) string {
	if !s.Loaded {
		return "no state loaded, every check is answered unsynced: " + dash(s.Error)
	}
	line := fmt.Sprintf("%s, index %d, last confirmed %v ago", desired.Count(s.Keys, "key"), s.Index, time.Duration(s.Age*float64(time.Second)).Round(time.Second))
	// Another id counts on its own, and a warning says so.
	if s.ID == doc.ID && s.Root == doc.Root && s.Index < doc.Index {
		line += fmt.Sprintf(", not yet at index %d", doc.Index)
	}
	if s.Error != "" {
		line += "; the file on disk is refused: " + s.Error
	}
	return line
}
