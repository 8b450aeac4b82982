package dev

// server is one server of the small site that dev runs.
type server struct {
	backend string // "web"
	name    string // "web-01"
	group   string // the group key it sends besides its own; "" is none
}

// key returns the row key of the server.
func (s server) key() string { return s.backend + "/" + s.name }

// question returns what HAProxy asks the agent about the server: the row key,
// then the group, so that a row key wins over its group.
func (s server) question() string {
	if s.group == "" {
		return s.key()
	}
	return s.key() + " " + s.group
}

// site is what dev runs: two backends, each with a canary beside its servers.
func site() []server {
	return []server{
		{backend: "web", name: "web-01"},
		{backend: "web", name: "web-02"},
		{backend: "web", name: "web-03"},
		{backend: "web", name: "gke-cny-web", group: "canary"},
		{backend: "api", name: "api-01"},
		{backend: "api", name: "api-02"},
		{backend: "api", name: "api-cny", group: "canary"},
	}
}

// inGroup returns the row keys of the servers that send the group key.
func inGroup(servers []server, group string) []string {
	var keys []string
	for _, s := range servers {
		if s.group == group {
			keys = append(keys, s.key())
		}
	}
	return keys
}
