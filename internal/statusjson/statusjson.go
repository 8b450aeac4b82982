// Package statusjson is the shape of the documents that the daemons serve at
// /status.json and that the CLI reads. Times are RFC 3339; a time that is not
// known is left out. Fields are only ever added: [Schema] stays 1.
package statusjson

import "time"

// Schema is the version of the documents.
const Schema = 1

// Program is what every document begins with.
type Program struct {
	Schema  int       `json:"schema"`  // [Schema]
	Program string    `json:"program"` // e.g. "hadrain-responder"
	Version string    `json:"version"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
}

// Render is what hadrain-render serves.
type Render struct {
	Program
	Consul       string     `json:"consul"`          // address, without credentials
	Root         string     `json:"root"`            // KV root
	Path         string     `json:"path"`            // the state file; empty: switched off
	Synced       bool       `json:"synced"`          // a read was accepted and the file installed since the start
	ID           string     `json:"id,omitempty"`    // of the sentinel
	Index        uint64     `json:"index,omitempty"` // of the last accepted read
	Keys         int        `json:"keys"`            // rows in the file
	Content      string     `json:"content,omitempty"`
	LastContact  time.Time  `json:"last_contact,omitzero"`  // any answer of Consul
	LastAccepted time.Time  `json:"last_accepted,omitzero"` // the last read that was accepted
	Rejected     []Rejected `json:"rejected"`
	Skipped      []Skipped  `json:"skipped"`
	Refused      *Refused   `json:"refused,omitempty"`     // why the last read was refused; absent while reads are accepted
	WriteError   string     `json:"write_error,omitempty"` // why the file on disk is not the newest one
	Templates    []Template `json:"templates"`
}

// Refused says why render does not accept what Consul answers.
type Refused struct {
	Reason  string    `json:"reason"`  // one word, as in the metric's label
	Message string    `json:"message"` // what happened and what to do
	Since   time.Time `json:"since"`
}

// Rejected is a key whose value is not a state.
type Rejected struct {
	Key    string `json:"key"`
	State  string `json:"state"`  // what is served instead
	Reason string `json:"reason"` // the value, what was wanted, what is kept
}

// Skipped is a key that cannot travel in agent-send.
type Skipped struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

// Template is one further template of render.
type Template struct {
	Source      string    `json:"source"`
	Destination string    `json:"destination"`
	Applied     time.Time `json:"applied,omitzero"` // last success
	Error       string    `json:"error,omitempty"`  // of the last try
}

// Responder is what hadrain-responder serves.
type Responder struct {
	Program
	State    State      `json:"state"`
	Rejected []Rejected `json:"rejected"`
	Skipped  []Skipped  `json:"skipped"`
	Rows     []Row      `json:"rows"`    // rows that HAProxy asks for, by name
	Unasked  []string   `json:"unasked"` // keys of the state that this HAProxy never asks for
}

// State is the state file as the responder holds it.
type State struct {
	Path     string    `json:"path"`
	Loaded   bool      `json:"loaded"` // false: every check is answered "unsynced"
	Root     string    `json:"root,omitempty"`
	ID       string    `json:"id,omitempty"`
	Index    uint64    `json:"index,omitempty"`
	Rendered time.Time `json:"rendered,omitzero"` // last change
	Read     time.Time `json:"read,omitzero"`     // render's last accepted read of Consul
	Age      float64   `json:"age_seconds"`       // since Read, in seconds
	Keys     int       `json:"keys"`
	Content  string    `json:"content,omitempty"`
	Error    string    `json:"error,omitempty"` // why the file on disk is not the one served
}

// Row is one question that HAProxy asks again and again.
type Row struct {
	Row      string    `json:"row"`              // first key
	Keys     []string  `json:"keys"`             // all keys, in the order sent
	Key      string    `json:"key,omitempty"`    // the key that answered; empty: none has a value
	Answer   string    `json:"answer"`           // without its newline, e.g. "drain 100%"
	Since    time.Time `json:"since"`            // when this answer was first given
	Asked    time.Time `json:"asked"`            // when it was last asked
	Interval float64   `json:"interval_seconds"` // between the last questions; 0: asked once
	Index    uint64    `json:"index,omitempty"`  // of the state it was answered from
	Silent   bool      `json:"silent"`           // not asked for three intervals while other rows are
}
