package cli

import (
	"fmt"
	"os"
	"os/user"
	"strings"
)

// owner returns who is doing this: --as, else the user behind sudo, else the
// login name, each of the latter @ the host.
func (a *app) owner() (string, error) {
	if a.as != "" {
		return a.as, nil
	}
	name := os.Getenv("SUDO_USER")
	if name == "" {
		u, err := user.Current()
		if err != nil {
			return "", fmt.Errorf("finding out who you are: %w; say so with --as", err)
		}
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("finding out the name of this host: %w; say who you are with --as", err)
	}
	return name + "@" + host, nil
}

// sameOwner reports whether a and b are the same person: the same name, from
// whatever host. Everybody can be root, so of root the host counts too.
func sameOwner(a, b string) bool {
	name, _, _ := strings.Cut(a, "@")
	other, _, _ := strings.Cut(b, "@")
	return a == b || name == other && name != "root"
}
