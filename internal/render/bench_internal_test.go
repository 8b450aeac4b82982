package render

import (
	"fmt"
	"testing"
	"time"

	dep "github.com/hashicorp/consul-template/dependency"
	ctemplate "github.com/hashicorp/consul-template/template"

	"hadrain/internal/kv"
)

// BenchmarkRender measures what a changed read costs from the decoded answer to
// the checked bytes of the file.
func BenchmarkRender(b *testing.B) {
	for _, keys := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			query, err := dep.NewKVListQuery(kv.StatePrefix("hadrain"))
			if err != nil {
				b.Fatal(err)
			}
			r := renderer{root: "hadrain", host: "h", brain: ctemplate.NewBrain(), watched: query}
			read := &kv.Read{ID: "id", Pairs: pairs(keys)}
			last, _, err := r.render(read, nil, time.Now())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				read.Index++
				if last, _, err = r.render(read, last, time.Now()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func pairs(keys int) []*dep.KeyPair {
	all := make([]*dep.KeyPair, keys)
	for i := range all {
		key := fmt.Sprintf("web/server-%06d", i)
		all[i] = &dep.KeyPair{
			Path: kv.StatePrefix("hadrain") + key, Key: key,
			Value: `drain # by=alice at=2026-09-09T12:00:02Z reason="chg-123 canary deploy"`,
		}
	}
	return all
}
