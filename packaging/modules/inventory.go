package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// inventory is what some binaries are made of.
type inventory struct {
	binaries []binary
	modules  []module // of all binaries, sorted by path
}

type binary struct {
	name    string
	sum     string   // SHA-256, hex
	modules []string // purl of each
}

// module is one module that is linked in, or Go's standard library.
type module struct {
	path, version string
	sum           string // as in go.sum; empty for the standard library
	license       string // SPDX expression
	texts         []string
}

// purl is the package URL, see https://github.com/package-url/purl-spec.
func (m module) purl() string { return "pkg:golang/" + m.path + "@" + m.version }

// source is where the exact source can be had, which the MPL wants to be said.
func (m module) source() string {
	if m.path == "stdlib" {
		return "https://go.dev/dl/" + m.version + ".src.tar.gz"
	}
	var escaped strings.Builder
	for _, c := range m.path { // as Go's module proxy spells upper case
		if c >= 'A' && c <= 'Z' {
			escaped.WriteByte('!')
			c += 'a' - 'A'
		}
		escaped.WriteRune(c)
	}
	return "https://proxy.golang.org/" + escaped.String() + "/@v/" + m.version + ".zip"
}

// take reads the binaries and the licences of what they are made of.
func take(paths []string) (*inventory, error) {
	all := map[string]module{}
	inv := &inventory{}
	for _, path := range paths {
		b, modules, err := readBinary(path)
		if err != nil {
			return nil, fmt.Errorf("reading binary %s: %w", path, err)
		}
		inv.binaries = append(inv.binaries, b)
		for _, m := range modules {
			all[m.purl()] = m
		}
	}
	for _, m := range all {
		inv.modules = append(inv.modules, m)
	}
	slices.SortFunc(inv.modules, func(a, b module) int { return strings.Compare(a.purl(), b.purl()) })
	return inv, inv.addLicenses()
}

func readBinary(path string) (binary, []module, error) {
	f, err := os.Open(path)
	if err != nil {
		return binary{}, nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := buildinfo.Read(f)
	if err != nil {
		return binary{}, nil, err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return binary{}, nil, err
	}
	b := binary{name: filepath.Base(path), sum: hex.EncodeToString(hash.Sum(nil))}
	modules := []module{{path: "stdlib", version: info.GoVersion}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		modules = append(modules, module{path: dep.Path, version: dep.Version, sum: dep.Sum})
	}
	for _, m := range modules {
		b.modules = append(b.modules, m.purl())
	}
	return b, modules, nil
}

// addLicenses finds the licence of every module.
func (inv *inventory) addLicenses() error {
	dirs, err := moduleDirs(inv.modules)
	if err != nil {
		return err
	}
	var errs []error
	for i := range inv.modules {
		m := &inv.modules[i]
		m.license, m.texts, err = readLicenses(dirs[m.purl()])
		if err != nil {
			errs = append(errs, fmt.Errorf("licence of %s %s: %w", m.path, m.version, err))
		}
	}
	return errors.Join(errs...)
}

// moduleDirs returns the directory of each module by its purl. What is not in
// the module cache yet is downloaded.
func moduleDirs(modules []module) (map[string]string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking for GOROOT: %w", err)
	}
	dirs := map[string]string{}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		if m.path == "stdlib" {
			dirs[m.purl()] = strings.TrimSpace(string(root))
			continue
		}
		args = append(args, m.path+"@"+m.version)
	}
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("downloading modules: %w", err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var got struct{ Path, Version, Dir string }
		if err := decoder.Decode(&got); errors.Is(err, io.EOF) {
			return dirs, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding go mod download's output: %w", err)
		}
		dirs[module{path: got.Path, version: got.Version}.purl()] = got.Dir
	}
}
