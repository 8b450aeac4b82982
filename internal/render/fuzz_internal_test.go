package render

import (
	"bytes"
	"testing"
	"time"

	dep "github.com/hashicorp/consul-template/dependency"
	ctemplate "github.com/hashicorp/consul-template/template"

	"hadrain/internal/kv"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

// FuzzRender: whatever stands in Consul, what is rendered can be read, is what
// the reference makes of it, and does not change when it is rendered again.
func FuzzRender(f *testing.F) {
	f.Add("canary", `drain # by=alice reason="x"`, "maint")
	f.Add("a\nweb/b  maint", "drain", "ready")
	f.Add("/dbl", "dran # \x00", "50%")
	f.Add(".hadrain", "v1 id=x", "")
	f.Add("k", "ready # rejected x", "ready # note: y")
	query, err := dep.NewKVListQuery(kv.StatePrefix("hadrain"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key, first, second string) {
		r := renderer{root: "hadrain", host: "h", brain: ctemplate.NewBrain(), watched: query}
		var last *statefile.File
		for i, value := range []string{first, second} {
			path := kv.StatePrefix("hadrain") + key
			read := &kv.Read{ID: "id", Index: uint64(i), Pairs: []*dep.KeyPair{{Path: path, Key: key, Value: value}, {Path: path + "~", Key: key + "~", Value: second}}}
			file, data, err := r.render(read, last, time.Now())
			if err != nil {
				t.Fatalf("%q = %q: %v", key, value, err)
			}
			if want := statefiletest.Format(file); !bytes.Equal(data, want) {
				t.Fatalf("%q = %q: rendered\n%s\nwant\n%s", key, value, data, want)
			}
			if again, data, err := r.render(read, file, time.Now()); err != nil || data != nil || again != file {
				t.Fatalf("%q = %q rendered again: %v, changed %t", key, value, err, data != nil)
			}
			last = file
		}
	})
}
