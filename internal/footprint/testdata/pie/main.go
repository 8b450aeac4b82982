// Command pie releases its pages and goes on. It is built as distributions build
// programs: at a place that is known only when it is loaded, so that the loader
// writes addresses into constants and then takes the right to write away.
package main

import (
	"fmt"
	"io"
	"os"

	"hadrain/internal/footprint"
)

func main() {
	for range 3 {
		if err := footprint.Release(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		// Types, their tables of methods and names are such constants.
		for _, v := range []any{io.EOF, fmt.Stringer(nil), os.Stdout, struct{ A, B string }{"a", "b"}, map[string]any{"x": 1}} {
			fmt.Fprintf(io.Discard, "%+v %T", v, v)
		}
	}
	fmt.Println("goes on")
}
