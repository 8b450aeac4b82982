package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// files makes the sources of an image, with the given time and mode.
func files(t *testing.T, at time.Time, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"tool": "a program", "doc/b": "B", "doc/a": "A"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func build(t *testing.T, dir string) (archive []byte, digest string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.tar")
	var printed strings.Builder
	err := run([]string{
		"-name", "localhost/x:1", "-arch", "arm64", "-date", "1700000000", "-o", out,
		"-label", "b=2", "-label", "a=1", "-entrypoint", "/usr/bin/tool", "-stop-signal", "SIGUSR1",
		filepath.Join(dir, "tool") + ":/usr/bin/tool:0755", filepath.Join(dir, "doc") + ":/usr/share/doc",
	}, &printed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data, strings.TrimSpace(printed.String())
}

// untar returns the files of an archive and, in order, all names.
func untar(t *testing.T, data []byte) (contents map[string]string, names []string) {
	t.Helper()
	contents = map[string]string{}
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return contents, names
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		contents[h.Name] = string(b)
		names = append(names, h.Name)
	}
}

func TestTheSameFilesGiveTheSameBytes(t *testing.T) {
	first, _ := build(t, files(t, time.Unix(1, 0), 0o644))
	second, _ := build(t, files(t, time.Unix(2_000_000_000, 0), 0o600))
	if !bytes.Equal(first, second) {
		t.Error("times and modes of the sources change the image")
	}
}

func TestImage(t *testing.T) {
	data, digest := build(t, files(t, time.Unix(1, 0), 0o644))
	all, _ := untar(t, data)
	var docker []dockerManifest
	if err := json.Unmarshal([]byte(all["manifest.json"]), &docker); err != nil {
		t.Fatal(err)
	}
	for name, content := range all {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && digestOf([]byte(content)) != "sha256:"+sum {
			t.Errorf("%s has the digest %s", name, digestOf([]byte(content)))
		}
	}
	if _, ok := all["blobs/"+strings.Replace(digest, ":", "/", 1)]; !ok {
		t.Errorf("printed digest %s, which is no blob", digest)
	}
	var config imageConfig
	if err := json.Unmarshal([]byte(all[docker[0].Config]), &config); err != nil {
		t.Fatal(err)
	}
	if got := config.Config; got.User != "65532:65532" || got.Entrypoint[0] != "/usr/bin/tool" || got.StopSignal != "SIGUSR1" || got.Labels["b"] != "2" {
		t.Errorf("configuration %+v", got)
	}
	if config.Architecture != "arm64" || config.Created != "2023-11-14T22:13:20Z" {
		t.Errorf("image %+v", config)
	}
	unzipped, err := gzip.NewReader(strings.NewReader(all[docker[0].Layers[0]]))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	if config.RootFS.DiffIDs[0] != digestOf(layer) {
		t.Errorf("diff id %s, the layer's is %s", config.RootFS.DiffIDs[0], digestOf(layer))
	}
	_, names := untar(t, layer)
	if got, want := strings.Join(names, " "), "usr/ usr/bin/ usr/bin/tool usr/share/ usr/share/doc/ usr/share/doc/a usr/share/doc/b"; got != want {
		t.Errorf("layer has %s, want %s", got, want)
	}
}

func TestRefused(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"-name", "x:1", "-o", "/dev/null"},
		{"-name", "x:1", "-o", "/dev/null", "file:relative"},
		{"-name", "x:1", "-o", "/dev/null", "/etc/hostname:/x:9"},
		{"-name", "x:1", "-o", "/dev/null", "-label", "no-value", "/etc/hostname:/x"},
		{"-name", "x:1", "-o", "/dev/null", "/no/such/file:/x"},
	} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("run(%q) succeeded", args)
		}
	}
}
