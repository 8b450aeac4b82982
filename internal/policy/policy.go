// Package policy holds no code: its tests say which package may import what,
// and what no file may do.
package policy
