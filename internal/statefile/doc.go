// Package statefile is the contract between render, which writes the state
// file, and everybody who reads it: the format, the atomic write and the watch.
//
// The file is UTF-8 text, one line a key, sorted by key:
//
//	# hadrain state v1 root=hadrain id=6f1c index=4711 rendered=2026-09-09T12:00:03Z host=haproxy-main-07
//	canary           drain    # by=alice at=2026-09-09T12:00:02Z reason="chg-123 canary deploy"
//	web/gke-cny-web  ready
//	web/web-07       drain    # rejected "dran": want ready, drain, maint, hold or N%; keeping drain
//	# skipped "web/a b": white space in the key
//	# end keys=3 content=… sha256=…
//
// The last line seals it: content is the SHA-256 over the key lines alone,
// equal on every host with the same state; sha256 covers every byte before the
// last line. A file that was cut or edited is refused, and its reader keeps
// the last good state.
//
// The modification time of the file is the time of the last accepted read of
// Consul, also of one that brought no change; rendered= is the time of the last
// change.
package statefile
