package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An entry is a file of the image.
type entry struct {
	source string
	mode   int64
}

// pack returns a tar of what the arguments name, sorted, with the directories
// that lead there. Whose the sources are and when they were written is left out.
func pack(args []string, at time.Time) ([]byte, error) {
	files := map[string]entry{}
	for _, arg := range args {
		if err := collect(files, arg); err != nil {
			return nil, err
		}
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	made := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := directories(w, made, path.Dir(name), at); err != nil {
			return nil, err
		}
		if err := file(w, name, files[name], at); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buf.Bytes(), err
}

// collect adds what one argument, FILE:PATH[:MODE], names.
func collect(files map[string]entry, arg string) error {
	words := strings.Split(arg, ":")
	if len(words) < 2 || len(words) > 3 || !path.IsAbs(words[1]) {
		return fmt.Errorf("%q: want FILE:PATH or FILE:PATH:MODE with an absolute PATH", arg)
	}
	var mode int64 = 0o644
	if len(words) == 3 {
		var err error
		if mode, err = strconv.ParseInt(words[2], 8, 32); err != nil {
			return fmt.Errorf("%q: mode: %w", arg, err)
		}
	}
	root, target := words[0], strings.TrimPrefix(path.Clean(words[1]), "/")
	return filepath.WalkDir(root, func(source string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(root, source)
		if err != nil {
			return err
		}
		files[path.Join(target, filepath.ToSlash(below))] = entry{source, mode}
		return nil
	})
}

// directories adds dir and what is above it, each once.
func directories(w *tar.Writer, made map[string]bool, dir string, at time.Time) error {
	if dir == "." || made[dir] {
		return nil
	}
	if err := directories(w, made, path.Dir(dir), at); err != nil {
		return err
	}
	made[dir] = true
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at, Format: tar.FormatPAX})
}

func file(w *tar.Writer, name string, e entry, at time.Time) error {
	data, err := os.ReadFile(e.source)
	if err != nil {
		return err
	}
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: e.mode, Size: int64(len(data)), ModTime: at, Format: tar.FormatPAX})
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
