package agentcheck

// A LostReason says why a connection got no answer.
type LostReason uint8

// The reasons.
const (
	LostSilent  LostReason = iota // it sent nothing before it closed, or for a second
	LostReset                     // it was reset before its question was complete
	LostEvicted                   // it made room for another one
	LostReply                     // the peer was gone when the reply was written

	lostReasons = iota
)

var lostNames = [lostReasons]string{"silent", "reset", "evicted", "gone"}

// String returns the reason as a label.
func (r LostReason) String() string { return lostNames[r] }

// Stats are counts since the start of a [Server].
type Stats struct {
	Open     int64                 // connections now
	Accepted uint64                // connections
	Lost     map[LostReason]uint64 // connections without an answer; has every reason
}

// Stats returns the counts.
func (s *Server) Stats() Stats {
	stats := Stats{Open: s.open.Load(), Accepted: s.accepted.Load(), Lost: map[LostReason]uint64{}}
	for r := range LostReason(lostReasons) {
		stats.Lost[r] = s.lost[r].Load()
	}
	return stats
}

func (s *Server) lose(r LostReason) { s.lost[r].Add(1) }
