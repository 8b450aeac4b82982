package cli

import "hadrain/internal/cmdline"

// Exit statuses besides those of package cmdline. The rest of the set is kept
// free: 3 not converged in time, 5 applied on some load balancers only.
const (
	// ExitRefused means that a guard said no: a foreign owner, something that
	// changed meanwhile, a prompt that was declined. Nothing was written.
	ExitRefused = 4
)

func refusal(err error) error { return cmdline.Exit(ExitRefused, err) }
