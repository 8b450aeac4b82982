// Package benchrender holds no code: its benchmark measures what hadrain-render
// costs beside stock consul-template.
package benchrender
