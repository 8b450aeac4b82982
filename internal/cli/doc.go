// Package cli is the command line of hadrain: each verb in a few functions of
// its own, with [Command] putting them together.
//
// # Output
//
// What was asked for goes to standard output, and with -o json that is exactly
// one document; previews, questions, progress and warnings go to standard error
// with the time on every line. The preview of --dry-run is what was asked for.
// Where both are a terminal, a table of the result after its preview is left out.
// An error goes to standard error as "hadrain: ..." and says what to do.
//
// # Exit status
//
//	0  done, also if it was so already
//	1  an error, such as Consul not answering
//	2  usage: an unknown verb or flag, a bad state or key, a glob without a match; nothing was written
//	4  refused by a guard: somebody else's drain, something that changed meanwhile, a question
//	   not answered with y, another id than asked for or than load balancers follow; nothing was written
//
// 141 is that of a command whose standard output nobody reads any more, as in
// "hadrain status | head"; what it was to write is written.
//
// 3 (not converged) and 5 (applied on some load balancers only) are kept for
// verbs that wait.
//
// # Documents
//
// Every document of -o json has "schema": 1, RFC 3339 times in UTC, and lists
// that are never null. Fields are only ever added. The verbs that write states
// (drain, undrain, maint, ready, weight, hold, clear) print
//
//	{
//	  "schema": 1,
//	  "verb": "drain",
//	  "consul": "localhost:8500",     address, without credentials
//	  "root": "hadrain",
//	  "id": "6f1c...",                of the sentinel
//	  "by": "alice@bastion",
//	  "reason": "chg-123",            absent if none
//	  "at": "2026-09-09T12:00:02Z",
//	  "until": "2026-09-09T16:00:02Z",  absent without --ttl
//	  "dry_run": false,
//	  "applied": true,                something was written
//	  "index": 4711,                  Consul's index of the write; absent if none
//	  "changes": [
//	    {
//	      "key": "canary",
//	      "from": "ready",            raw value; null: none
//	      "to": "drain # by=...",     raw value; null: none
//	      "state": "drain",           of "to"; null: none, or rejected
//	      "changed": true,            false: it was as wanted
//	      "servers": ["web/web-01"],  known rows that it decides for
//	      "masked": ["web/web-03"]    known rows that send it, but another key of theirs wins
//	    }
//	  ],
//	  "warnings": [],
//	  "notes": []
//	}
//
// status prints
//
//	{
//	  "schema": 1,
//	  "consul": "localhost:8500",
//	  "root": "hadrain",
//	  "at": "2026-09-09T12:00:03Z",
//	  "id": "6f1c...",
//	  "index": 4711,                  of the state prefix
//	  "error": "...",                 why there are no keys (exit status 1); absent if none
//	  "keys": [
//	    {
//	      "key": "canary",
//	      "value": "drain # by=...",  raw; null: none
//	      "state": "drain",           null: none, rejected or skipped
//	      "rejected": "...",          why it is no state; absent if accepted
//	      "skipped": "...",           why no load balancer follows this key; absent if they do
//	      "by", "at", "until", "reason": from the note; absent if not there
//	      "overdue": false,
//	      "masks": []                 groups of this row that have a value, which it hides
//	    }
//	  ],
//	  "rows": [                       as in /status.json of responders, and
//	    {"responder": "http://127.0.0.1:9779", "host": "lb-1", "row": "web/web-01", "keys": [...], "key": "canary", "answer": "drain 100%", ...}
//	  ],
//	  "responders": [
//	    {"url": "http://127.0.0.1:9779", "host": "lb-1", "state": {...}},   state as in /status.json
//	    {"url": "http://127.0.0.2:9779", "error": "..."}
//	  ],
//	  "warnings": []                  as for the verbs that write: who does not follow, what may be missing
//	}
//
// init prints schema, consul, root, id, created, dry_run and keys (the number
// of other keys under the prefix); query prints schema, address, question and
// answer; version prints schema, program and version.
package cli
