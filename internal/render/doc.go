// Package render turns the state prefix of Consul into the state file.
//
// One goroutine owns the state: the last accepted read, the file that was made
// of it, and what is known about the file on disk. Reading (package kv) and
// watching the file (package statefile) tell it by level triggers that there
// may be something to do; HTTP sees immutable snapshots.
package render
