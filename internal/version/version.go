// Package version says which build of Hadrain this is.
package version

import "runtime/debug"

// linked is set by the linker: the Makefile passes what git describe says.
// Builds that know no git, such as go install, leave it empty.
var linked string

// String returns the version for people and for metric labels: what the
// linker was given, else the module version or the commit that the Go command
// stamped, else "devel". It is never empty and never ends in a newline.
func String() string {
	info, _ := debug.ReadBuildInfo()
	return choose(linked, info)
}

// choose prefers the most deliberate source; info may be nil.
func choose(linked string, info *debug.BuildInfo) string {
	if linked != "" {
		return linked
	}
	if info == nil {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-dirty"
			}
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision[:min(len(revision), 12)] + dirty
}
