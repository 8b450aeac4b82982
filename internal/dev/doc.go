// Package dev is `hadrain dev`: the whole product on one machine, with nothing
// to prepare. It starts a store, render, responder, small web servers and,
// where HAProxy is installed, a real HAProxy in front of them with a client
// that sends requests through it, so that a drain can be watched in traffic.
//
// Everything listens on the loopback device, lives in a private temporary
// directory and ends with [Run]; what a killed one leaves, the next one removes.
// It is for learning and demonstrations; the parts that a production host runs
// are the same code.
package dev
