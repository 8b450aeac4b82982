// Command docs writes what a package of Hadrain documents about its commands:
// man pages to DIR/man and completions for bash, zsh and fish to DIR/completions.
//
//	go run ./packaging/docs -version VERSION -date SECONDS DIR
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hadrain/internal/manual"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "docs: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("docs", flag.ContinueOnError)
	version := flags.String("version", "devel", "version in the foot of the pages")
	date := flags.Int64("date", 0, "date of the pages, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("name one directory to write to")
	}
	build := manual.Build{Version: *version, Date: time.Unix(*date, 0)}
	for _, program := range manual.Programs() {
		if err := write(flags.Arg(0), program, build); err != nil {
			return err
		}
	}
	return nil
}

func write(dir string, program manual.Program, build manual.Build) error {
	for _, page := range program.Pages(build) {
		path := filepath.Join(dir, "man", page.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, page.Content, 0o644); err != nil {
			return err
		}
	}
	return completions(filepath.Join(dir, "completions"), program.Command)
}

// completions writes the scripts under the names by which the shells load them.
func completions(dir string, c *cobra.Command) error {
	name := c.Name()
	for path, generate := range map[string]func(string) error{
		"bash/" + name:           func(path string) error { return c.GenBashCompletionFileV2(path, true) },
		"zsh/_" + name:           c.GenZshCompletionFile,
		"fish/" + name + ".fish": func(path string) error { return c.GenFishCompletionFile(path, true) },
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := generate(path); err != nil {
			return err
		}
	}
	return nil
}
