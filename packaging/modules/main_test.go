package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

func TestInventory(t *testing.T) {
	binary := testpeer.Build(t, "hadrain-responder")
	dir := t.TempDir()
	notices, sbom := filepath.Join(dir, "NOTICE"), filepath.Join(dir, "sbom.json")
	if err := run([]string{"-notices", notices, "-sbom", sbom, "-version", "1.2.3", "-date", "1", binary}); err != nil {
		t.Fatal(err)
	}
	text := read(t, notices)
	for _, want := range []string{
		"github.com/spf13/cobra v", "github.com/coreos/go-systemd/v22 v", "CoreOS Project", // its NOTICE file
		"https://go.dev/dl/go1.", "Copyright 2009 The Go Authors",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the notices do not contain %q", want)
		}
	}
	if strings.Contains(text, "hashicorp") {
		t.Error("the notices of the responder name what it does not contain")
	}

	var bill bom
	if err := json.Unmarshal([]byte(read(t, sbom)), &bill); err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{"hadrain": true}
	for _, c := range bill.Components {
		refs[c.Ref] = true
		if c.Type == "library" && (c.Licenses[0].Expression == "" || c.PURL == "") {
			t.Errorf("component %s has no licence or no purl", c.Name)
		}
	}
	for _, d := range bill.Dependencies {
		for _, ref := range append(d.DependsOn, d.Ref) {
			if !refs[ref] {
				t.Errorf("the bill refers to %q, which it does not list", ref)
			}
		}
	}
	sum := sha256.Sum256([]byte(read(t, binary)))
	if got, want := bill.Components[0].Hashes[0].Content, hex.EncodeToString(sum[:]); got != want {
		t.Errorf("sum of the binary is %s, want %s", got, want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadLicenses(t *testing.T) {
	for name, tc := range map[string]struct {
		files      map[string]string
		want       string
		texts      int
		wantsError string
	}{
		"one":     {files: map[string]string{"LICENSE": "Mozilla Public License, version 2.0"}, want: "MPL-2.0", texts: 1},
		"broken":  {files: map[string]string{"License.txt": "Permission is\n  hereby granted, free of charge"}, want: "MIT", texts: 1},
		"two":     {files: map[string]string{"LICENSE": "Apache License", "LICENSE.libyaml": "Permission is hereby granted, free of charge", "NOTICE": "by x"}, want: "Apache-2.0 AND MIT", texts: 3},
		"none":    {files: map[string]string{"README.md": "Apache License"}, wantsError: "none found"},
		"unknown": {files: map[string]string{"LICENSE": "All rights reserved."}, wantsError: "read it, and teach it"},
		"later":   {files: map[string]string{"LICENSE": "Business Source License 1.1; Change License: Mozilla Public License"}, wantsError: "read it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, texts, err := readLicenses(dir)
			if tc.wantsError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantsError) {
					t.Fatalf("error %v, want one with %q", err, tc.wantsError)
				}
				return
			}
			if err != nil || got != tc.want || len(texts) != tc.texts {
				t.Errorf("readLicenses = %q with %d texts, %v; want %q with %d", got, len(texts), err, tc.want, tc.texts)
			}
		})
	}
}
