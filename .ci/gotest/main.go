// Command gotest reads the output of `go test -json` and prints what a person
// wants to know: a line a package, everything a failed test printed, and at
// the end every skipped test with its reason. It exits with 1 if a test failed,
// or was skipped although $HADRAIN_TEST_REQUIRE_PEERS is set.
//
//	go test -json ./... | go run ./.ci/gotest [FAILED]
//
// If nothing else is wrong than a few failed tests, it writes them to the file
// FAILED, a line "PACKAGE TEST" each, and exits with 3: they may be run again.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
	strict := os.Getenv("HADRAIN_TEST_REQUIRE_PEERS") != ""
	if r.summarize(strict) {
		return
	}
	if len(os.Args) > 1 && r.mayRunAgain(strict) {
		if err := os.WriteFile(os.Args[1], []byte(strings.Join(r.failures, "")), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			os.Exit(1)
		}
		os.Exit(3)
	}
	os.Exit(1)
}

// fewFailures is how many tests may fail because the machine was busy. More is
// no accident.
const fewFailures = 5

// mayRunAgain reports whether failed tests are all that is wrong, and few.
func (r *report) mayRunAgain(strict bool) bool {
	return r.passed > 0 && len(r.failures) > 0 && len(r.failures) <= fewFailures && !r.died && !(strict && r.skipped > 0)
}

// An event is one line of test2json; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build event
	Test        string // empty: the package as a whole
	Output      string
	FailedBuild string
}

type report struct {
	out                     io.Writer
	printed                 map[string][]string // test → what it has printed
	seeds                   map[string]string   // package → the line with its -shuffle seed
	skips                   []string
	failures                []string // lines "PACKAGE TEST" of failed tests, without subtests
	died                    bool     // a package failed for another reason than a failed test
	passed, failed, skipped int
	packages, broken        int
}

func newReport(out io.Writer) *report {
	return &report{out: out, printed: map[string][]string{}, seeds: map[string]string{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(r.out, line) // the Go command itself, e.g. downloading
			} else {
				r.handle(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading go test's output: %w", err)
		}
	}
}

func (r *report) handle(e event) {
	id := e.Package + " " + e.Test
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "output" && e.Test == "" && strings.HasPrefix(e.Output, "-test.shuffle"):
		r.seeds[e.Package] = e.Output
	case e.Action == "output" && e.Test == "":
		if e.Output != "PASS\n" { // the line with "ok" follows
			fmt.Fprint(r.out, e.Output)
		}
	case e.Action == "output":
		r.printed[id] = append(r.printed[id], e.Output)
	case e.Test == "":
		r.endPackage(e)
	default:
		r.endTest(e, id)
	}
}

func (r *report) endTest(e event, id string) {
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		r.skips = append(r.skips, id+": "+reason(r.printed[id]))
	case "fail":
		r.failed++
		if !strings.Contains(e.Test, "/") {
			r.failures = append(r.failures, id+"\n")
		}
		fmt.Fprintf(r.out, "%s: %s\n%s", e.Package, e.Test, strings.Join(r.printed[id], ""))
	default:
		return // run, pause, cont
	}
	delete(r.printed, id)
}

func (r *report) endPackage(e event) {
	if e.Action != "pass" && e.Action != "fail" {
		return
	}
	r.packages++
	if e.Action == "pass" {
		return
	}
	r.broken++
	own := func(line string) bool { return strings.HasPrefix(line, e.Package+" ") }
	r.died = r.died || !slices.ContainsFunc(r.failures, own)
	fmt.Fprint(r.out, r.seeds[e.Package])
	for id, lines := range r.printed { // tests that were running when it died
		if own(id) {
			r.died = true
			fmt.Fprintf(r.out, "%s did not end\n%s", id, strings.Join(lines, ""))
			delete(r.printed, id)
		}
	}
}

// reason picks out of a skipped test's output what it gave to t.Skip.
func reason(lines []string) string {
	var text []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			text = append(text, line)
		}
	}
	return strings.Join(text, " ")
}

// summarize prints the end of the report and reports whether all is well.
func (r *report) summarize(strict bool) bool {
	if r.skipped > 0 {
		fmt.Fprintf(r.out, "\nskipped:\n  %s\n", strings.Join(r.skips, "\n  "))
	}
	fmt.Fprintf(r.out, "\n%d packages, %d of them failed\n%d passed, %d failed, %d skipped\n",
		r.packages, r.broken, r.passed, r.failed, r.skipped)
	switch {
	case r.passed == 0:
		fmt.Fprintln(r.out, "no test ran")
		return false
	case strict && r.skipped > 0:
		fmt.Fprintln(r.out, "HADRAIN_TEST_REQUIRE_PEERS is set: a skipped test counts as failed")
		return false
	}
	return r.failed == 0 && r.broken == 0
}
