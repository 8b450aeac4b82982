// Package kv is Hadrain's side of Consul: how it is reached, the strict watch
// on the state prefix that render lives on, and the writes of the CLI.
//
// Consul and the libraries around it mislead in ways that would drain or
// undrain a fleet: a list that a token may not read is an empty answer, not an
// error; a leader that replays its log answers with part of the keys and status
// 200; a restarted server can forget everything. The watch therefore accepts an
// answer only if all of it can be believed (see [ReadError]).
package kv
