// Package agentcheck answers HAProxy's agent checks over TCP or a unix socket.
//
// One connection is one question: the keys of a row in one line, as "agent-send"
// in haproxy.cfg has them. The answer is one line in one write (see package
// desired for what it says). Then the server waits, for at most half a second,
// until the peer has closed: HAProxy closes with a reset, which leaves no
// TIME_WAIT on either side; a server that closes first collects one a check.
//
// A question ends at its newline, or at a literal \n or \r\n at the end of what
// arrived (single quotes in haproxy.cfg). It may begin with option words:
//
//	+up      put the health word "up" before the answer
//	-up      leave it out, where the responder has --agent-up
//	-weight  leave the percentage out of ready, drain and maint
//
// What is no question gets an answer that HAProxy does not know, so that it
// changes nothing and shows the word to people in last_agt:
//
//	no-newline  the line did not end: 100 ms after its last byte, at the end of
//	            a half-closed connection, or a second after it was opened
//	refused     over 4096 bytes, over 64 keys, no key at all, or a word in front
//	            of or between the keys that looks like an option and is none
//
// A peer that sends nothing is closed without an answer after a second.
package agentcheck
