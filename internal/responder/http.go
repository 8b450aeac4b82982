package responder

import (
	"fmt"
	"net/http"
	"time"

	"hadrain/internal/httpserve"
)

func (r *responder) handler(now func() time.Time) http.Handler {
	return httpserve.Handler(httpserve.Config{
		Metrics: r.registry(),
		Alive:   func() error { return r.alive(now()) },
		Ready:   r.ready,
		Status:  func() any { return r.status(now()) },
		Page:    r.page(now),
	})
}

// stuck is the age of its last turn from which on an accept loop hangs: idle
// ones turn every second. It is that of systemd's watchdog in our unit.
const stuck = 10 * time.Second

// alive reports an accept loop that hangs: checks are not answered, while HTTP
// still is. Where no service manager watches, the kubelet asks for this.
func (r *responder) alive(now time.Time) error {
	if age := now.Sub(r.agent.Beat()); age >= stuck {
		return fmt.Errorf("agent checks are not accepted: the loop has not turned for %s", age.Round(time.Second))
	}
	return nil
}
