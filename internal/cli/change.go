package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
)

// writer is one command that writes states.
type writer struct {
	*app
	cmd        *cobra.Command
	allowEmpty bool
	only       func(current) error // refuses keys that the verb is not for; nil: takes all

	store  *kv.Store
	author kv.Author
	tell   progress
}

// run carries out one command: resolve, preview, confirm, write, show.
func (w *writer) run(args []string, want want) error {
	if err := w.check(); err != nil {
		return err
	}
	sels, err := parseSelectors(args)
	if err != nil {
		return err
	}
	if err := w.prepare(); err != nil {
		return err
	}
	ctx := w.cmd.Context()
	state, err := w.read(ctx, w.store)
	if err != nil {
		return err
	}
	rows := w.askResponders(ctx)
	doubts := append(rows.globs(sels), rows.lags(state, w.root)...)
	p, err := w.plan(sels, want, state, rows)
	if err != nil {
		w.tell.warnings(doubts)
		return err
	}
	p.doubts = doubts
	return w.carryOut(ctx, p, rows, state)
}

// plan decides what to do, or why it must not be done.
func (w *writer) plan(sels []selector, want want, state *kv.State, rows fleet) (plan, error) {
	keys, err := selectKeys(sels, rows.known(state), w.allowEmpty)
	if err != nil {
		return plan{}, err
	}
	if err := w.suits(keys, state); err != nil {
		return plan{}, err
	}
	p := makePlan(want, keys, state, rows, w.author)
	return p, p.guard()
}

func (w *writer) prepare() error {
	by, err := w.owner()
	if err != nil {
		return err
	}
	w.author = kv.Author{By: by, Reason: w.reason, At: time.Now().UTC()}
	w.tell = progress{w.cmd.ErrOrStderr()}
	w.store, err = w.app.store()
	return err
}

func (w *writer) suits(keys []string, state *kv.State) error {
	if w.only == nil {
		return nil
	}
	for _, key := range keys {
		if err := w.only(currentOf(state, key)); err != nil {
			return refusal(fmt.Errorf("%s: %w; nothing was written", key, err))
		}
	}
	return nil
}

// carryOut shows the plan, asks, writes and shows the result.
func (w *writer) carryOut(ctx context.Context, p plan, rows fleet, state *kv.State) error {
	writes := p.writes()
	if writes > 0 {
		// Before the preview, which must not promise what cannot be.
		if err := w.store.Check(state, p.changes(), w.author); err != nil {
			return w.explain(err)
		}
	}
	doc := p.document(w.app, state, rows)
	if w.dryRun {
		doc.DryRun = true
		if !w.json() {
			return w.previewDry(p, doc)
		}
		return printJSON(w.cmd.OutOrStdout(), doc)
	}
	w.preview(w.tell, p, doc)
	if writes == 0 {
		w.tell.line("nothing to do: %s", p.already())
		return w.finish(ctx, p, doc)
	}
	if !w.yes {
		question := fmt.Sprintf("write %s to %s/state/ in Consul at %s?", desired.Count(writes, "change"), w.root, w.store.Address())
		if err := confirm(ctx, w.cmd.InOrStdin(), w.cmd.ErrOrStderr(), question); err != nil {
			return err
		}
	}
	index, err := w.apply(ctx, state, p.changes())
	if err != nil {
		return w.explain(err)
	}
	doc.Applied, doc.Index = true, index
	w.tell.line("written: %s in one transaction, index %d; load balancers follow with their next agent check", desired.Count(writes, "change"), index)
	return w.finish(ctx, p, doc)
}

func (w *writer) apply(ctx context.Context, state *kv.State, changes []kv.Change) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return w.store.Apply(ctx, state, changes, w.author)
}

// finish shows what became of the keys. Failing to is an error that says what
// was done: it must not look as if the change had failed.
func (w *writer) finish(ctx context.Context, p plan, doc changeDocument) error {
	err := w.show(ctx, p, doc)
	switch {
	case err == nil:
		return nil
	case doc.Applied:
		return fmt.Errorf("the change is written (index %d), but showing it failed: %w", doc.Index, err)
	}
	return fmt.Errorf("there was nothing to do, but showing it failed: %w", err)
}

// show prints the document, or the state of the keys once more, as it is now.
func (w *writer) show(ctx context.Context, p plan, doc changeDocument) error {
	out := w.cmd.OutOrStdout()
	if w.json() {
		return printJSON(out, doc)
	}
	if terminal(out) && terminal(w.cmd.ErrOrStderr()) {
		return nil // the preview above says the same
	}
	state, err := w.read(ctx, w.store)
	if err != nil {
		w.tell.line("warning: the state after that could not be read: %v", err)
		return nil
	}
	var keys []keyStatus
	for _, s := range p.steps {
		keys = append(keys, statusOf(s.key, state, p.now))
	}
	return writeKeys(out, keys, w.output == "wide")
}

// preview tells what the command is about to do.
func (w *writer) preview(out io.Writer, p plan, doc changeDocument) {
	_, _ = fmt.Fprintf(out, "%s: %s/state/ in Consul at %s, as %s\n", p.want.verb, w.root, w.store.Address(), p.by)
	// Standard error that is closed is no reason to stop.
	_ = p.table().write(out, plain)
	for _, line := range doc.Notes {
		_, _ = fmt.Fprintf(out, "note: %s\n", escape(line))
	}
	for _, line := range doc.Warnings {
		_, _ = fmt.Fprintf(out, "warning: %s\n", escape(line))
	}
}

// previewDry prints the preview on standard output: it is what was asked for.
// Warnings go where they always go.
func (w *writer) previewDry(p plan, doc changeDocument) error {
	w.tell.warnings(doc.Warnings)
	out := w.cmd.OutOrStdout()
	if err := p.table().write(out, painter(out)); err != nil {
		return err
	}
	for _, line := range doc.Notes {
		if _, err := fmt.Fprintf(out, "note: %s\n", escape(line)); err != nil {
			return err
		}
	}
	w.tell.line("dry run: nothing was written")
	return nil
}

// table shows each key: from, to and whom it reaches.
func (p *plan) table() *table {
	t := &table{}
	t.add("KEY", "FROM", "BY", "TO", "SERVERS")
	for _, s := range p.steps {
		to := p.want.String()
		switch {
		case !s.changes:
			to = s.from.String()
		case p.want.delete:
			to = "-"
		}
		if !s.changes {
			to += " (no change)"
		}
		t.add(s.key, s.from.String(), dash(s.from.by()), to, names(s.servers))
	}
	return t
}

func (p *plan) already() string {
	switch {
	case len(p.steps) == 0:
		return "no key is named"
	case p.want.drained:
		return "nothing named is in drain or maint by its own key"
	case p.want.delete:
		return "there is no value to delete"
	}
	return "already " + p.want.String()
}

func printJSON(w io.Writer, doc any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(doc)
}
