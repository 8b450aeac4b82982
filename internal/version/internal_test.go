package version

import (
	"runtime/debug"
	"testing"
)

func TestChoose(t *testing.T) {
	settings := func(kv ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{}
		for i := 0; i < len(kv); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: kv[i], Value: kv[i+1]})
		}
		return info
	}
	released := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}
	for name, tc := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		"linker wins":        {"v9", released, "v9"},
		"module version":     {"", released, "v1.2.3"},
		"commit":             {"", settings("vcs.revision", "0123456789abcdef"), "0123456789ab"},
		"commit with edits":  {"", settings("vcs.modified", "true", "vcs.revision", "0123"), "0123-dirty"},
		"nothing is known":   {"", settings(), "devel"},
		"devel of go run":    {"", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "devel"},
		"no build info":      {"", nil, "devel"},
		"edits of no commit": {"", settings("vcs.modified", "true"), "devel"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := choose(tc.linked, tc.info); got != tc.want {
				t.Errorf("choose(%q, %+v) = %q, want %q", tc.linked, tc.info, got, tc.want)
			}
		})
	}
}
