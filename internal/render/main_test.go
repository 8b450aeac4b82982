package render_test

import (
	"io"
	"log"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// consul-template logs each step to the standard logger.
	log.SetOutput(io.Discard)
	// A developer's own Consul is not what these tests talk about.
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "CONSUL_") {
			if err := os.Unsetenv(name); err != nil {
				log.Panic(err)
			}
		}
	}
	goleak.VerifyTestMain(m)
}
