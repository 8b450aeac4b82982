package devstore

import "net/http"

// NodeName is the name under which a store presents itself in /v1/agent/self,
// by which a tool or a person can tell it from a real Consul. Sessions belong to
// this node.
const NodeName = "hadrain dev store"

// imitated is the version of Consul whose behaviour the store shows.
const imitated = "1.14.11"

// leaderAddress is what a single Consul server on loopback reports.
const leaderAddress = "127.0.0.1:8300"

func (s *Store) statusLeader(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseOptions(r); err != nil {
		return err
	}
	if s.done.Err() != nil {
		return reply(w, r, http.StatusOK, "")
	}
	return reply(w, r, http.StatusOK, leaderAddress)
}

func (s *Store) statusPeers(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseOptions(r); err != nil {
		return err
	}
	return reply(w, r, http.StatusOK, []string{leaderAddress})
}

// agentSelf answers with the fields of Consul's answer that say who is there.
func (s *Store) agentSelf(w http.ResponseWriter, r *http.Request) error {
	type config struct {
		Datacenter        string
		PrimaryDatacenter string
		NodeName          string
		NodeID            string
		Revision          string
		Server            bool
		Version           string
	}
	type member struct {
		Name   string
		Addr   string
		Tags   map[string]string
		Status int // 1: alive
	}
	return reply(w, r, http.StatusOK, map[string]any{
		"Config": config{
			Datacenter:        datacenter,
			PrimaryDatacenter: datacenter,
			NodeName:          NodeName,
			Revision:          NodeName,
			Server:            true,
			Version:           imitated,
		},
		"DebugConfig": map[string]any{},
		"Member":      member{Name: NodeName, Addr: "127.0.0.1", Tags: map[string]string{"role": "consul"}, Status: 1},
		"Stats":       map[string]map[string]string{"agent": {"name": NodeName}},
		"Meta":        map[string]string{"hadrain": "dev"},
	})
}
