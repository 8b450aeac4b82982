// Command image packs files into a container image without an engine:
//
//	go run ./packaging/image -name REF -arch ARCH -o OUT.tar [flags] FILE:PATH[:MODE]...
//
// OUT.tar is an OCI image layout that is also a Docker archive, so that
// skopeo, podman load, docker load and ctr images import all take it. FILE may
// be a directory, whose files go below PATH. The same files, flags and Go
// release give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

// Set appends value.
func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// run writes the image and prints the digest of its manifest.
func run(args []string, stdout io.Writer) error {
	var command, labels, env list
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	name := flags.String("name", "", "name with a tag, such as localhost/hadrain:1.0")
	out := flags.String("o", "", "the archive")
	arch := flags.String("arch", "amd64", "architecture of the programs")
	date := flags.Int64("date", 0, "time of the image and its files, in seconds since 1970")
	user := flags.String("user", "65532:65532", "who it runs as")
	stop := flags.String("stop-signal", "", "signal that ends it")
	flags.Var(&command, "entrypoint", "a word of the command; repeatable")
	flags.Var(&labels, "label", "KEY=VALUE; repeatable")
	flags.Var(&env, "env", "NAME=VALUE; repeatable")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *name == "" || *out == "" || flags.NArg() == 0 {
		return errors.New("want -name, -o and at least one FILE:PATH")
	}
	at := time.Unix(*date, 0).UTC()
	layer, err := pack(flags.Args(), at)
	if err != nil {
		return err
	}
	config := imageConfig{
		Created: at.Format(time.RFC3339), Architecture: *arch, OS: "linux",
		Config: runConfig{User: *user, Env: env, Entrypoint: command, StopSignal: *stop},
	}
	if config.Config.Labels, err = pairs(labels); err != nil {
		return err
	}
	digest, err := write(*out, *name, layer, config)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, digest)
	return err
}

func pairs(labels []string) (map[string]string, error) {
	m := map[string]string{}
	for _, label := range labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok {
			return nil, fmt.Errorf("label %q: want KEY=VALUE", label)
		}
		m[key] = value
	}
	return m, nil
}
