// Command modules writes down what our binaries are made of: the notices and
// licences of every module that is linked into them, which their licences want
// to travel along, and a bill of materials (CycloneDX 1.5, JSON).
//
//	go run ./packaging/modules [-notices FILE] [-sbom FILE] -version V -date SECONDS BINARY...
//
// It reads the list from the binaries, not from go.mod, which also names what
// is only tested with; and the texts from Go's module cache. A licence that it
// does not know is an error, so that somebody reads it before it is shipped.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "modules: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("modules", flag.ContinueOnError)
	notices := flags.String("notices", "", "file for notices and licences")
	sbom := flags.String("sbom", "", "file for the bill of materials")
	version := flags.String("version", "devel", "version of Hadrain")
	date := flags.Int64("date", 0, "date of the bill, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the binaries")
	}
	inventory, err := take(flags.Args())
	if err != nil {
		return err
	}
	if *notices != "" {
		if err := os.WriteFile(*notices, noticesText(inventory.modules), 0o644); err != nil {
			return err
		}
	}
	if *sbom == "" {
		return nil
	}
	bill, err := billOfMaterials(inventory, *version, time.Unix(*date, 0))
	if err != nil {
		return err
	}
	return os.WriteFile(*sbom, bill, 0o644)
}
