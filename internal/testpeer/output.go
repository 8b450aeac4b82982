package testpeer

import (
	"bytes"
	"strings"
	"sync"
)

// Output collects what a program prints or logs while tests read it. Its zero
// value is empty.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Count returns how often text stands in what was written.
func (o *Output) Count(text string) int { return strings.Count(o.String(), text) }
