package desired

import "strconv"

// Count says how many things there are, for people: "1 key", "2 keys". The word
// is one that takes an s.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
