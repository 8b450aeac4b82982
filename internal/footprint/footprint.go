// Package footprint keeps out of a daemon's resident memory what it needed only
// to start. It reads /proc/self/smaps.
package footprint

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const smaps = "/proc/self/smaps"

// A mapping is an entry of smaps, see proc_pid_smaps(5).
type mapping struct {
	start, end uintptr
	file       bool // it shows a file
	private    bool // MAP_PRIVATE: what is written to it stays in this process
	writable   bool
	known      bool // whether some of its pages are not the file's any more
	copied     bool // some are
}

// disposable reports whether the pages of m are, byte for byte, those of a file,
// and stay so. The code and the constants of a program are; its variables are
// not, nor are tables in which the loader wrote addresses before it took the right
// to write away (RELRO, of a program built as PIE), nor code with a breakpoint.
func (m *mapping) disposable() bool {
	return m.file && m.private && !m.writable && m.known && !m.copied
}

// Release takes the code and the constants of the program out of its resident
// memory. What is still used comes back at its next use, from the page cache, as
// it came the first time.
//
// The kernel maps a program's file 64 KiB at a time, and nearly every package has
// something to set up when the program starts: so most of the file is mapped
// then, and stays so. Call Release when that is done. It takes a millisecond.
func Release() error {
	f, err := os.Open(smaps)
	if err != nil {
		return err
	}
	defer f.Close()
	mappings, err := parse(f)
	if err != nil {
		return fmt.Errorf("%s: %w", smaps, err)
	}
	for _, m := range mappings {
		if !m.disposable() {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); errno != 0 {
			err = cmp.Or(err, fmt.Errorf("madvise of %x-%x: %w", m.start, m.end, errno))
		}
	}
	return err // the first one: where one is refused, all are
}

// parse reads smaps: for each mapping a line such as
//
//	00400000-00c6e000 r-xp 00000000 fe:00 1573 /usr/bin/hadrain-render
//
// and lines of a name, a colon and a value.
func parse(r io.Reader) (mappings []mapping, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) >= 3 && (words[0] == "Anonymous:" || words[0] == "Swap:") && len(mappings) > 0:
			// Anonymous counts only what is in memory.
			m := &mappings[len(mappings)-1]
			m.known = m.known || words[0] == "Anonymous:"
			m.copied = m.copied || words[1] != "0"
		case len(words) >= 5 && !strings.HasSuffix(words[0], ":"):
			m := mapping{file: words[4] != "0"}
			if _, err := fmt.Sscanf(words[0], "%x-%x", &m.start, &m.end); err != nil || len(words[1]) != 4 {
				return nil, fmt.Errorf("no mapping: %q", lines.Text())
			}
			m.writable, m.private = words[1][1] != '-', words[1][3] == 'p'
			mappings = append(mappings, m)
		}
	}
	return mappings, lines.Err()
}
