package testpeer

import (
	"io"
	"log"
	"os"
	"strings"
)

// OwnConsul makes tests of this process talk to the Consul that they start: a
// developer's own is not what they are about. It also silences consul-template,
// which logs each step to the standard logger.
func OwnConsul() {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "CONSUL_") {
			if err := os.Unsetenv(name); err != nil {
				log.Panic(err)
			}
		}
	}
	log.SetOutput(io.Discard)
}
