package statefile_test

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sample() *statefile.File {
	return &statefile.File{
		Head: statefile.Head{
			Root: "hadrain", ID: "6f1c", Index: 4711, Host: "haproxy-main-07",
			Rendered: time.Date(2026, 9, 9, 12, 0, 3, 0, time.UTC),
		},
		Rows: []desired.Row{
			{Key: "canary", State: desired.Drain, Note: `by=alice at=2026-09-09T12:00:02Z reason="chg-123 canary deploy"`},
			{Key: "web/gke-cny-web", State: desired.Ready},
			desired.Accept("web/web-07", "dran", desired.Row{State: desired.Drain}, true),
		},
		Skipped: []statefile.Skipped{{Key: "web/a b", Reason: "white space in the key"}},
	}
}

// The documented example, byte for byte; the checksums were made with sha256sum.
func TestFormat(t *testing.T) {
	const want = `# hadrain state v1 root=hadrain id=6f1c index=4711 rendered=2026-09-09T12:00:03Z host=haproxy-main-07
canary           drain    # by=alice at=2026-09-09T12:00:02Z reason="chg-123 canary deploy"
web/gke-cny-web  ready
web/web-07       drain    # rejected "dran": want ready, drain, maint, hold or N%; keeping drain
# skipped "web/a b": white space in the key
# end keys=3 content=289f20d31897dd971f0b211947ede26d548777a2cd5e89f978681512ca53e4b7 sha256=b3967ff6fcf4926e5f509e03ac1671516992156b362bbb68c09018c630789676
`
	if got := string(statefiletest.Format(sample())); got != want {
		t.Errorf("Format:\n%s\nwant:\n%s", got, want)
	}
	if got := sample().Content(); !strings.Contains(want, " content="+got+" ") {
		t.Errorf("Content() = %s is not the one in the end line", got)
	}
}

func TestParseIsTheInverseOfFormat(t *testing.T) {
	for name, f := range map[string]*statefile.File{
		"sample": sample(),
		"empty":  {Head: statefile.Head{Root: "a/b", ID: "x", Host: "h", Rendered: time.Unix(0, 0).UTC()}, Rows: []desired.Row{}},
		"nothing but skipped keys": {
			Head: statefile.Head{Root: "r", ID: "i", Host: "h", Rendered: time.Unix(0, 0).UTC()}, Rows: []desired.Row{},
			Skipped: []statefile.Skipped{{Key: "a b", Reason: "x"}, {Key: "c\nd", Reason: "y"}},
		},
		"notes that look like marks": {Head: statefile.Head{Root: "r", ID: "i", Host: "h", Rendered: time.Unix(1, 0).UTC()}, Rows: []desired.Row{
			{Key: "a", State: desired.Drain, Note: "rejected by QA"},
			{Key: "b", State: desired.Drain, Note: "note: rejected by QA"},
			{Key: "c", State: desired.Drain, Note: "# end keys=0"},
			{Key: strings.Repeat("k", 256), State: desired.Maint, Note: "long key"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := statefile.Parse(statefiletest.Format(f))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, f) {
				t.Errorf("Parse(Format(f)) = %+v, want %+v", got, f)
			}
		})
	}
}

func TestParseRefusesEveryCut(t *testing.T) {
	whole := statefiletest.Format(sample())
	for n := range whole {
		if f, err := statefile.Parse(bytes.Clone(whole[:n])); err == nil {
			t.Errorf("the first %d of %d bytes were accepted: %+v", n, len(whole), f)
		}
		if n > 0 {
			if f, err := statefile.Parse(bytes.Clone(whole[n:])); err == nil {
				t.Errorf("the file without its first %d bytes was accepted: %+v", n, f)
			}
		}
	}
	if _, err := statefile.Parse(append(bytes.Clone(whole), '\n')); err == nil {
		t.Error("a file with a line behind the end line was accepted")
	}
}

func TestParseRefusesEveryFlippedBit(t *testing.T) {
	whole := statefiletest.Format(sample())
	for i := range whole {
		for bit := range 8 {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << bit
			if f, err := statefile.Parse(flipped); err == nil {
				t.Errorf("bit %d of byte %d flipped: accepted as %+v", bit, i, f)
			}
		}
	}
}

// Files with a good seal and a bad body: what only a broken writer could make.
func TestParseRefusesSealedNonsense(t *testing.T) {
	head := sample().Header() + "\n"
	for body, reason := range map[string]string{
		"":                         "line 1",
		"web/a ready\n":            "line 1: not a state file",
		"# hadrain state v2 x=y\n": "line 1",
		strings.Replace(head, "index=4711", "index=04711", 1): "line 1: not as a state file writes it",
		strings.Replace(head, "index=", "idx=", 1):            "line 1: no index=",
		head + "web/a  reedy\n":                               `line 2: key "web/a"`,
		head + "web/a\n":                                      `line 2: key "web/a"`,
		head + "web/a  ready now\n":                           "text after the state",
		head + "web/b  ready\nweb/a  ready\n":                 `line 3: key "web/a" is not in order`,
		head + "web/a  ready\nweb/a  drain\n":                 `line 3: key "web/a" is not in order`,
		head + " web/a  ready\n":                              "empty key",
		head + "# remark\n":                                   "line 2: \"# remark\": want only skipped keys",
		head + "\n":                                           "empty key",
		head + "# skipped web/a\n":                            "skipped key",
		head + "# skipped \"a\": x\nweb/a  ready\n":           `line 3: "web/a  ready": want only skipped keys`,
	} {
		_, err := statefile.Parse(statefile.Seal([]byte(body)))
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("Parse of sealed %q = %v, want an error with %q", body, err, reason)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(statefiletest.Format(sample()))
	f.Add([]byte{})
	f.Add(statefile.Seal(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Half of the inputs get a good seal, to reach what lies behind it.
		for _, data := range [][]byte{bytes.Clone(data), statefile.Seal(bytes.Clone(data))} {
			file, err := statefile.Parse(data)
			if err != nil {
				continue
			}
			again, err := statefile.Parse(statefiletest.Format(file))
			if err != nil || !reflect.DeepEqual(again, file) {
				t.Errorf("Parse(Format(f)) = %+v, %v, want %+v", again, err, file)
			}
		}
	})
}

// Whatever stands in Consul, the file that comes of it reads back as it was.
func FuzzRows(f *testing.F) {
	f.Add("web/a", "drain # by=x", "web/b", "dran", "bad key")
	f.Add("a", "ready # rejected x", "b", "ready # note: x", "\xff\n")
	f.Fuzz(func(t *testing.T, key1, raw1, key2, raw2, bad string) {
		file := sample()
		file.Rows = []desired.Row{}
		for key, raw := range map[string]string{key1: raw1, key2: raw2} {
			if desired.CheckKey(key) == nil {
				file.Rows = append(file.Rows, desired.Accept(key, raw, desired.Row{State: desired.Drain}, len(raw)%2 == 0))
			}
		}
		sort.Slice(file.Rows, func(i, j int) bool { return file.Rows[i].Key < file.Rows[j].Key })
		file.Skipped[0].Key = bad[:min(len(bad), desired.MaxKey)]
		got, err := statefile.Parse(statefiletest.Format(file))
		if err != nil || !reflect.DeepEqual(got, file) {
			t.Errorf("Parse(Format(f)) = %+v, %v, want %+v", got, err, file)
		}
	})
}

func big(keys int) *statefile.File {
	f := sample()
	f.Rows = f.Rows[:0]
	for i := range keys {
		f.Rows = append(f.Rows, desired.Row{Key: fmt.Sprintf("web/server-%06d", i), State: desired.State(i % 2), Note: `by=alice reason="x"`})
	}
	return f
}

func BenchmarkParse(b *testing.B) {
	for _, keys := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			data := statefiletest.Format(big(keys))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := statefile.Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	path := b.TempDir() + "/state"
	data := statefiletest.Format(big(1_000))
	for b.Loop() {
		if err := statefile.Write(path, data); err != nil {
			b.Fatal(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}
