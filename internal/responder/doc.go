// Package responder is the daemon hadrain-responder: it reads the state file
// that render writes, answers HAProxy's agent checks from it, and remembers
// which rows HAProxy asks for.
package responder
