package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// legal matches the names of files that a licence wants to travel along.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// readLicenses returns the licence of the module in dir as an SPDX expression,
// and the texts of its licences and notices.
func readLicenses(dir string) (expression string, texts []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	var ids []string
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !legal.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", nil, err
		}
		texts = append(texts, string(text))
		if upper := strings.ToUpper(name); strings.HasPrefix(upper, "NOTICE") || strings.HasPrefix(upper, "PATENTS") {
			continue
		}
		id := identify(string(text))
		if id == "" {
			return "", nil, fmt.Errorf("%s is none that this program knows: read it, and teach it", filepath.Join(dir, name))
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return "", nil, errors.New("none found in " + dir)
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " AND "), texts, nil
}

// licences by words of theirs, in the order in which they are looked for: some
// quote others.
var licenses = []struct{ id, words string }{
	{"MPL-2.0", "mozilla public license"},
	{"Apache-2.0", "apache license"},
	{"BSD-3-Clause", "neither the name"},
	{"BSD-2-Clause", "redistributions in binary form must reproduce"},
	{"MIT", "permission is hereby granted, free of charge"},
	{"ISC", "permission to use, copy, modify, and"},
}

// identify returns the SPDX identifier of a licence, or "" for one that it does
// not know or that we cannot ship under.
func identify(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	if strings.Contains(text, "business source license") {
		return "" // it names the licence that it becomes one day
	}
	for _, l := range licenses {
		if strings.Contains(text, l.words) {
			return l.id
		}
	}
	return ""
}
