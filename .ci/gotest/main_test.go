package main

import (
	"strings"
	"testing"
)

// stream is what go test -json prints, shortened: a package that passes with a
// skipped test, one that fails, and one that dies in the middle of a test.
const stream = `go: downloading example.com/m v1.0.0
{"Action":"start","Package":"a"}
{"Action":"output","Package":"a","Output":"-test.shuffle 1\n"}
{"Action":"run","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"quiet\n"}
{"Action":"pass","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"a","Test":"TestPeer","Output":"=== RUN   TestPeer\n"}
{"Action":"output","Package":"a","Test":"TestPeer","Output":"    a_test.go:7: needs consul\n"}
{"Action":"output","Package":"a","Test":"TestPeer","Output":"--- SKIP: TestPeer (0.00s)\n"}
{"Action":"skip","Package":"a","Test":"TestPeer"}
{"Action":"output","Package":"a","Output":"PASS\n"}
{"Action":"output","Package":"a","Output":"ok  \ta\t0.1s\n"}
{"Action":"pass","Package":"a"}
`

const failures = `{"Action":"output","Package":"b","Output":"-test.shuffle 2\n"}
{"Action":"output","Package":"b","Test":"TestBad","Output":"    b_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"b","Test":"TestBad"}
{"Action":"fail","Package":"b"}
{"Action":"output","Package":"c","Test":"TestHang","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"c"}
`

func TestReport(t *testing.T) {
	for name, tc := range map[string]struct {
		in      string
		strict  bool
		good    bool
		want    []string
		notWant []string
	}{
		"a skip is told": {
			stream, false, true,
			[]string{"go: downloading", "ok  \ta\t0.1s\n", "a TestPeer: a_test.go:7: needs consul\n", "\n1 passed, 0 failed, 1 skipped\n"},
			[]string{"quiet", "shuffle", "PASS", "=== RUN"},
		},
		"a skip counts as failed": {stream, true, false, []string{"a skipped test counts as failed"}, nil},
		"failures": {
			stream + failures, false, false,
			[]string{"-test.shuffle 2\n", "b: TestBad\n    b_test.go:9: got 1, want 2\n", "c TestHang did not end\npanic: test timed out\n", "3 packages, 2 of them failed\n1 passed, 1 failed, 1 skipped\n"},
			nil,
		},
		"no test":   {"", false, false, []string{"no test ran"}, nil},
		"no build":  {`{"Action":"build-output","ImportPath":"d","Output":"d.go:1: syntax error\n"}` + "\n" + `{"Action":"fail","Package":"d"}`, false, false, []string{"d.go:1: syntax error\n"}, nil},
		"no output": {`{"Action":"pass","Package":"d","Test":"TestD"}`, false, true, []string{"1 passed, 0 failed, 0 skipped"}, []string{"skipped:"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(tc.in)); err != nil {
				t.Fatal(err)
			}
			if good := r.summarize(tc.strict); good != tc.good {
				t.Errorf("summarize(%v) = %v, want %v", tc.strict, good, tc.good)
			}
			for _, text := range tc.want {
				if !strings.Contains(out.String(), text) {
					t.Errorf("output lacks %q:\n%s", text, out.String())
				}
			}
			for _, text := range tc.notWant {
				if strings.Contains(out.String(), text) {
					t.Errorf("output has %q:\n%s", text, out.String())
				}
			}
		})
	}
}

func TestMayRunAgain(t *testing.T) {
	const (
		failed = `{"Action":"fail","Package":"b","Test":"TestBad/case"}
{"Action":"fail","Package":"b","Test":"TestBad"}
{"Action":"fail","Package":"b"}
`
		noBuild = `{"Action":"fail","Package":"d"}` + "\n"
	)
	for name, tc := range map[string]struct {
		in     string
		strict bool
		want   bool
	}{
		"a test failed":            {stream + failed, false, true},
		"a test failed, one skips": {stream + failed, true, false},
		"nothing failed":           {stream, false, false},
		"nothing passed":           {failed, false, false},
		"a package does not build": {stream + failed + noBuild, false, false},
		"a package died":           {stream + failures, false, false},
		"many tests failed":        {stream + strings.Repeat(failed, 6), false, false},
		"it died behind a failure": {stream + strings.Replace(failed, `{"Action":"fail","Package":"b"}`, `{"Action":"output","Package":"b","Test":"TestHang","Output":"panic\n"}`+"\n"+`{"Action":"fail","Package":"b"}`, 1), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReport(&strings.Builder{})
			if err := r.read(strings.NewReader(tc.in)); err != nil {
				t.Fatal(err)
			}
			if got := r.mayRunAgain(tc.strict); got != tc.want {
				t.Errorf("mayRunAgain = %t, want %t; failures %q, died %t", got, tc.want, r.failures, r.died)
			}
			if tc.want && strings.Join(r.failures, "") != "b TestBad\n" {
				t.Errorf("failures %q", r.failures)
			}
		})
	}
}
