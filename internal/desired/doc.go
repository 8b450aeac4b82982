// Package desired says what operators can ask of a server and what HAProxy is
// told about it. It does no I/O and imports nothing but the standard library.
//
// A value in Consul KV is
//
//	STATE            ready, drain, maint, hold or N% (0 to 100)
//	STATE # note     the same, with free text after a blank and a #
//
// A key names one server ("backend/server", a row key) or every server that
// sends it ("canary", a group key). HAProxy sends the keys of a row in one
// line; the first key that has a value answers (see [Resolve]).
//
// Every answer states administrative state and weight together, because
// HAProxy changes only what a reply mentions: "50%" followed by a bare "ready"
// would stay at 50 %, "drain" followed by a bare "50%" would stay drained
// (HAProxy configuration manual, "agent-check").
package desired
