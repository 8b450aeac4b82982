package testpeer_test

import (
	"debug/buildinfo"
	"runtime/debug"
	"slices"
	"testing"

	"hadrain/internal/testpeer"
)

func TestBuild(t *testing.T) {
	path := testpeer.Build(t, "hadrain-responder")
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "hadrain/cmd/responder"; info.Path != want {
		t.Errorf("built %s, want %s", info.Path, want)
	}
	own, err := buildinfo.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := race(info), race(own); got != want {
		t.Errorf("command built with -race: %v; this test: %v", got, want)
	}
	if again := testpeer.Build(t, "hadrain-responder"); again != path {
		t.Errorf("second Build = %s, want %s", again, path)
	}
}

func TestBuildPlain(t *testing.T) {
	info, err := buildinfo.ReadFile(testpeer.BuildPlain(t, "hadrain-responder"))
	if err != nil {
		t.Fatal(err)
	}
	if race(info) {
		t.Error("built with the race detector")
	}
}

func race(info *buildinfo.BuildInfo) bool {
	return slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}
