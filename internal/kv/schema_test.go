package kv_test

import (
	"testing"

	"hadrain/internal/kv"
)

func TestRoot(t *testing.T) {
	for root, ok := range map[string]bool{
		"hadrain": true, "gitlab-haproxy-agent": true, "a/b.c/d_e": true,
		"": false, "/a": false, "a/": false, "a//b": false, "a@dc": false, "a?ns=b": false, "a b": false, "a\n": false,
		"..": false, ".": false, "a/../b": false, "a/.": false, "...": true, ".a": true,
	} {
		if err := kv.CheckRoot(root); (err == nil) != ok {
			t.Errorf("CheckRoot(%q) = %v", root, err)
		}
	}
}

func TestSentinel(t *testing.T) {
	if got, err := kv.ParseSentinel(kv.FormatSentinel(idA) + "\n"); err != nil || got != idA {
		t.Errorf("ParseSentinel(FormatSentinel(%q)) = %q, %v", idA, got, err)
	}
	for _, bad := range []string{"", "v1", "v1 id=", "v2 id=" + idA, "v1 id=" + idA + " x", "v1 id=XYZ"} {
		if got, err := kv.ParseSentinel(bad); err == nil {
			t.Errorf("ParseSentinel(%q) = %q, want an error", bad, got)
		}
	}
}
