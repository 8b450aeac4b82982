package kv

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var rootPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)

// CheckRoot returns nil if root can be the root of Hadrain's keys: words of
// letters, digits, dots, underscores and hyphens, separated by single slashes.
// Anything else would be another prefix than it looks: Consul redirects "a//b"
// and the template library takes "@dc" and "?ns=" out of a prefix.
func CheckRoot(root string) error {
	if rootPattern.MatchString(root) {
		return checkDots(root)
	}
	if root == "" {
		return errors.New(`the KV root is empty: want a name such as "hadrain"`)
	}
	return fmt.Errorf("KV root %q: want words of letters, digits, '.', '_' and '-', separated by single slashes", root)
}

// checkDots refuses what a path leaves out when Consul's HTTP API cleans it.
func checkDots(root string) error {
	for word := range strings.SplitSeq(root, "/") {
		if word == "." || word == ".." {
			return fmt.Errorf("KV root %q: %q is no name of a key", root, word)
		}
	}
	return nil
}

// StatePrefix returns the prefix of the keys that hold states, with its final
// slash: Consul's prefixes are strings, and "state" would also be "statement".
func StatePrefix(root string) string { return root + "/state/" }

// SentinelName is the last part of the sentinel's key.
const SentinelName = ".hadrain"

// SentinelKey returns the key of the sentinel: the proof that the prefix is
// readable, whole, meant, and the same as before.
func SentinelKey(root string) string { return StatePrefix(root) + SentinelName }

const sentinelVersion = "v1 id="

var idPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// CheckID returns nil if id is a UUID in lower-case hexadecimal.
func CheckID(id string) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("id %q: want a UUID such as 6f1c7c0a-4d9e-4c65-8f0e-2b1c9a7d5e43", id)
	}
	return nil
}

// FormatSentinel returns the sentinel's value for id.
func FormatSentinel(id string) string { return sentinelVersion + id }

// ParseSentinel returns the id in the sentinel's value. White space around it
// is ignored.
func ParseSentinel(value string) (id string, err error) {
	id, ok := strings.CutPrefix(strings.TrimSpace(value), sentinelVersion)
	if !ok {
		return "", fmt.Errorf("sentinel %.40q: want %q and a UUID", value, sentinelVersion)
	}
	if err := CheckID(id); err != nil {
		return "", fmt.Errorf("sentinel %.40q: %w", value, err)
	}
	return id, nil
}
