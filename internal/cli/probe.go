package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
)

const probeLong = `Ask daemons whether they are ready, for the kubelet.

It succeeds if the first URL answers with a status of 2xx. If not it prints what
each URL answers: the first says that HAProxy must wait, the others why. The
kubelet's own HTTP probe keeps only the number of the status.`

// probeTimeout bounds one request: all are to the same machine.
const probeTimeout = 2 * time.Second

// probeBytes is how much of an answer is read. The kubelet cuts, too.
const probeBytes = 512

func probeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "probe URL...", Short: "For probes of the kubelet: ask whether daemons are ready", Long: probeLong,
		Hidden: true, ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdline.Usage(errors.New("probe: name a URL, such as http://127.0.0.1:9779/readyz"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.probe(cmd.Context(), args) },
	}
}

func (a *app) probe(ctx context.Context, operands []string) error {
	urls := make([]*url.URL, len(operands))
	for i, operand := range operands {
		u, err := parseURL(operand)
		if err != nil {
			return cmdline.Usage(fmt.Errorf("operand %w", err))
		}
		urls[i] = u
	}
	client, err := daemonClient(a.responderCA)
	if err != nil {
		return err
	}
	first := probeOne(ctx, client, urls[0])
	if first == nil {
		return nil
	}
	reasons := []string{first.Error()}
	for _, u := range urls[1:] {
		if err := probeOne(ctx, client, u); err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return errors.New(strings.Join(reasons, "; "))
}

// probeOne returns nil for an answer of 2xx, else the answer as an error.
func probeOne(ctx context.Context, client *http.Client, u *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	resp, err := get(ctx, client, u)
	if err != nil {
		return fmt.Errorf("%s: %w", shownURL(u), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, probeBytes))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", shownURL(u), err)
	}
	text := escape(strings.TrimSpace(string(body)))
	if text == "" {
		text = resp.Status
	}
	return fmt.Errorf("%s: %s", shownURL(u), text)
}
