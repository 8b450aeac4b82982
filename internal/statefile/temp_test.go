package statefile_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hadrain/internal/statefile"
)

// What a killed writer left goes at the next start and at the next write, whatever
// the file and its directory are called, and nothing else does.
func TestTemporaryFilesGo(t *testing.T) {
	for _, base := range []string{"state", "a[", "a[b]", "a]", "a*", "*", "*.tmp-*", "a?", `a\`, `a\*`, "tmp-*", "a\nb", "a\xff"} {
		for name, remove := range map[string]func(path string) error{
			"Sweep": statefile.Sweep,
			"Write": func(path string) error { return statefile.Write(path, nil) },
			"Copy":  func(path string) error { return statefile.Copy(path, path) },
		} {
			dir := filepath.Join(t.TempDir(), "a[b]*\\")
			must(t, os.Mkdir(dir, 0o755))
			stay := []string{
				base, ".ab.tmp-1", ".ax.tmp-1", ".other.tmp-1", "." + base + ".lock", "." + base + ".tmp-", "." + base + ".tmp-1x",
				"." + base + ".tmp-1.tmp-2", "." + base + ".tmp-1.lock", // of a file NAME.tmp-1
			}
			for _, name := range append([]string{"." + base + ".tmp-0", "." + base + ".tmp-1", "." + base + ".tmp-4294967295"}, stay...) {
				must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
			}
			must(t, remove(filepath.Join(dir, base)))
			slices.Sort(stay)
			if got := names(t, dir); !slices.Equal(got, stay) {
				t.Errorf("%s of %q: there is now %q, want %q", name, base, got, stay)
			}
		}
	}
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
