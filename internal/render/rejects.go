package render

import (
	"log/slog"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
)

// mostRejects is how many lines about rejected values one read can cost: a tool
// gone wrong may write thousands.
const mostRejects = 20

// logRejects logs the values that came to be rejected with now, and those that
// are no longer. before is the file that now follows; nil: none.
func logRejects(log *slog.Logger, before, now *statefile.File) {
	var last []desired.Row
	if before != nil {
		last = before.Rows
	}
	news := 0
	for _, row := range now.Rows {
		old, _ := lookup(last, row.Key)
		if row.Rejected == old.Rejected {
			continue
		}
		switch news++; {
		case news > mostRejects:
		case row.Rejected != "":
			log.Warn("value rejected", "key", row.Key, "reason", row.Rejected)
		default:
			log.Info("value accepted again", "key", row.Key, "state", row.State.String())
		}
	}
	if news > mostRejects {
		log.Warn("more values were rejected or accepted again", "keys", news-mostRejects)
	}
}
