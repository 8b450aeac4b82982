// Package devstore is an embedded store that speaks the part of Consul's HTTP
// API that Hadrain uses, so that `hadrain dev` shows the whole product on a
// laptop with nothing else installed. It is for demonstrations and tests and
// never for production: one process, in memory, no ACLs, no TLS, no raft; when
// it stops, everything in it is gone.
//
// What a client can see is that of Consul 1.14: status codes, headers, bodies,
// error texts and the rules of the index. The same contract tests run against
// this store and against a real Consul, and a random sequence of requests must
// get the same answers from both.
//
// Imitated:
//
//   - /v1/kv/KEY: GET with recurse, keys, separator, raw, index and wait; PUT
//     with flags, cas, acquire and release; DELETE with recurse and cas.
//   - /v1/txn with the KV operations, all or nothing.
//   - /v1/session/create, destroy, renew, info, list and node, with TTL,
//     Behavior and LockDelay.
//   - /v1/status/leader, /v1/status/peers and a small /v1/agent/self, whose
//     node name is [NodeName], so that a person can tell what answers.
//   - The index: that of a key is its ModifyIndex, that of a prefix the largest
//     one below it, tombstones of deleted keys included (for 15 minutes), that
//     of something missing the one of the whole table. It is never 0. A PUT that
//     changes nothing leaves it alone and wakes nobody. It starts over when a
//     new store is made, as it does when `consul agent -dev` restarts.
//   - Limits: 512 KiB for a value and for a transaction, 128 operations.
//
// Not imitated: ACLs (tokens are ignored), namespaces and partitions (refused,
// as by the community edition), other data centers, the catalog, health checks
// (a session may name only serfHealth, which never fails), node, service and
// check operations in transactions, compressed answers, and consistency modes
// (accepted, but one process has only one truth). A value larger than the limit
// is refused also when it comes without a Content-Length. A query that waits
// for a missing prefix may wake more often than with Consul.
package devstore
