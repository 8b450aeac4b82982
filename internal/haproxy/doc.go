// Package haproxy speaks to HAProxy's runtime socket: it sends one command and
// reads the answer, and it turns the answers of "show servers state",
// "show stat" and "show info" into typed rows.
//
// What is read here is what HAProxy applied, which is the only proof that a
// drain happened. The desired state of a server is in internal/desired.
//
// Parsers find columns by name, never by position, because HAProxy appends
// columns in every version (management guide, section 9.1 "CSV format", and
// section 9.3 "show servers state"). A column that a parser needs and does not
// find is an error that names it.
package haproxy
