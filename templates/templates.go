// Package templates holds the templates that are built into render.
package templates

import _ "embed"

// State is the template of the state file, in the language of consul-template.
//
//go:embed state.tmpl
var State string
