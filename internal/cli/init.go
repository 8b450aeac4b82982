package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
	"hadrain/internal/desired"
	"hadrain/internal/kv"
)

// initDocument is what -o json prints for init.
type initDocument struct {
	Schema  int    `json:"schema"`
	Consul  string `json:"consul"`
	Root    string `json:"root"`
	ID      string `json:"id"`      // of the sentinel; "": a random one, with dry_run
	Created bool   `json:"created"` // false: it was there before
	DryRun  bool   `json:"dry_run"`
	Keys    int    `json:"keys"` // other keys under the prefix
}

func initCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "init", Short: "Mark the prefix in Consul as meant; once for each Consul", Long: initLong, Example: initExample,
		Args: noOperands, ValidArgsFunction: cobra.NoFileCompletions,
	}
	id := cmd.Flags().String("id", "", "write this UUID, to re-create a lost sentinel")
	force := cmd.Flags().Bool("force", false, "also if a load balancer follows another id, which it then refuses to leave")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.check(); err != nil {
			return err
		}
		if cmd.Flags().Changed("id") {
			if err := kv.CheckID(*id); err != nil {
				return cmdline.Usage(fmt.Errorf("--id: %w", err))
			}
		}
		store, err := a.store()
		if err != nil {
			return err
		}
		marked, err := a.mark(cmd.Context(), store, *id, *force)
		if err != nil {
			return a.explain(err)
		}
		return a.showInit(cmd, store, marked, *id)
	}
	return cmd
}

// mark writes the sentinel, unless a load balancer would refuse it.
func (a *app) mark(ctx context.Context, store *kv.Store, id string, force bool) (kv.Marked, error) {
	once := func(dry bool) (kv.Marked, error) {
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		return store.Init(ctx, id, dry)
	}
	m, err := once(true)
	if err != nil || !m.Created {
		return m, err
	}
	if !force {
		rows := a.askResponders(ctx)
		if err := rows.allows(id, a.root); err != nil {
			return m, err
		}
	}
	if a.dryRun {
		return m, nil
	}
	return once(false)
}

// allows refuses a new id, "" for a random one, that a load balancer of this
// root would not follow: it waits for the one it knows.
func (f *fleet) allows(id, root string) error {
	for _, r := range f.reports {
		has := r.doc.State
		if r.err == nil && has.Loaded && has.Root == root && has.ID != id {
			return refusal(fmt.Errorf("load balancer %s follows id %s and would refuse another: did Consul lose its data? "+
				"then restore the values and run hadrain init --id %s (--force creates another id all the same); nothing was written",
				escape(r.doc.Host), escape(has.ID), escape(has.ID)))
		}
	}
	return nil
}

func (a *app) showInit(cmd *cobra.Command, store *kv.Store, m kv.Marked, id string) error {
	if a.dryRun && m.Created {
		m.ID = id // a random one would be another next time
	}
	if a.json() {
		return printJSON(cmd.OutOrStdout(), initDocument{
			Schema: schema, Consul: store.Address(), Root: store.Root(), ID: m.ID, Created: m.Created, DryRun: a.dryRun, Keys: m.Keys,
		})
	}
	what := "was initialised before, nothing is changed"
	switch {
	case m.Created && a.dryRun:
		what = "would be initialised (dry run, nothing was written)"
	case m.Created:
		what = "is initialised"
	}
	shown := m.ID
	if shown == "" {
		shown = "random"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s/state/ in Consul at %s %s: id %s, %s\n", store.Root(), store.Address(), what, shown, desired.Count(m.Keys, "other key"))
	return err
}
