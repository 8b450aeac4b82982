package responder

import (
	"net/http"
	"time"

	"hadrain/internal/httpserve"
)

func (r *responder) handler(now func() time.Time) http.Handler {
	return httpserve.Handler(httpserve.Config{
		Metrics: r.registry(),
		Ready:   r.ready,
		Status:  func() any { return r.status(now()) },
		Page:    r.page(now),
	})
}
