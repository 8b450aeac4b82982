//go:build !race

package main

// raceEnabled is for tests that measure memory.
const raceEnabled = false
