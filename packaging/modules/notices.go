package main

import (
	"fmt"
	"strings"
)

// noticesText lists the modules, and after it every text once, with the modules
// that it came with.
func noticesText(modules []module) []byte {
	var b strings.Builder
	b.WriteString("Hadrain is licensed under the Apache License 2.0. Its binaries contain the modules\n" +
		"listed here, unchanged, under the licences that follow. The source of each is at\nthe address beside it.\n\n")
	users := map[string][]string{} // text -> modules
	var texts []string
	for _, m := range modules {
		name := m.path + " " + m.version
		fmt.Fprintf(&b, "%s\n    %s\n    %s\n", name, m.license, m.source())
		for _, text := range m.texts {
			if users[text] == nil {
				texts = append(texts, text)
			}
			users[text] = append(users[text], name)
		}
	}
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(users[text], "\n"), strings.TrimSpace(text))
	}
	return []byte(b.String())
}
