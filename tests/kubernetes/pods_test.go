package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// A pod is what the API server says about one.
type pod struct {
	Metadata struct {
		Name              string
		DeletionTimestamp string
	}
	Status struct {
		Phase, PodIP                             string
		Conditions                               []condition
		InitContainerStatuses, ContainerStatuses []container
	}
}

type container struct {
	Name         string
	ContainerID  string
	Ready        bool
	RestartCount int
	State        map[string]map[string]any
}

func (p pod) ready() bool { return find(p.Status.Conditions, "Ready").Status == "True" }

// container returns the status of the container, of either kind.
func (p pod) container(name string) container {
	for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if c.Name == name {
			return c
		}
	}
	return container{}
}

// String says in one line what matters in a pod.
func (p pod) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s ready=%v ip=%s", p.Metadata.Name, p.Status.Phase, p.ready(), p.Status.PodIP)
	for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		for state, detail := range c.State {
			fmt.Fprintf(&text, " [%s %s ready=%v restarts=%d %v]", c.Name, state, c.Ready, c.RestartCount, detail["reason"])
		}
	}
	return text.String()
}

const pods = "/api/v1/namespaces/" + namespace + "/pods"

// run makes a pod of a Deployment's or a Job's template, as their controllers
// would, and puts it on the node, as the scheduler would.
func (c *cluster) run(t *testing.T, name string, of object) {
	t.Helper()
	c.runOn(t, ipv4, name, of)
}

func (c *cluster) runOn(t *testing.T, n network, name string, of object) {
	t.Helper()
	var p object
	if err := json.Unmarshal(encode(t, of.in("spec", "template")), &p); err != nil {
		t.Fatal(err)
	}
	p["apiVersion"], p["kind"] = "v1", "Pod"
	p["metadata"].(map[string]any)["name"] = name
	p["spec"].(map[string]any)["nodeName"] = n.node
	c.create(t, pods, p)
	t.Cleanup(func() {
		if t.Failed() {
			c.explain(t, name)
		}
	})
}

// explain logs what kubectl describe and kubectl logs would show.
func (c *cluster) explain(t *testing.T, name string) {
	if p, ok := c.look(t, name); ok {
		t.Log(p)
	}
	for _, e := range c.events(t, name) {
		t.Log("event: ", e)
	}
	logs, _ := filepath.Glob(c.dir + "/*/podlogs/" + namespace + "_" + name + "_*/*/*.log")
	for _, path := range logs {
		data, _ := os.ReadFile(path)
		t.Logf("%s\n%s", path, data[max(0, len(data)-3000):])
	}
}

// look returns the pod as it is now, if it is there.
func (c *cluster) look(t *testing.T, name string) (p pod, ok bool) {
	t.Helper()
	body, err := c.request("GET", pods+"/"+name, "", nil)
	if err != nil {
		if strings.Contains(err.Error(), "404") {
			return p, false
		}
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	return p, true
}

// await waits for the pod to be as cond wants it, and returns it.
func (c *cluster) await(t *testing.T, name, what string, cond func(pod) bool) pod {
	t.Helper()
	var p pod
	testpeer.WaitFor(t, name+" "+what, func() (bool, string) {
		p, _ = c.look(t, name)
		return cond(p), p.String()
	})
	return p
}

func (c *cluster) awaitReady(t *testing.T, name string) pod {
	t.Helper()
	return c.await(t, name, "to be ready", pod.ready)
}

// delete starts the end of a pod.
func (c *cluster) delete(t *testing.T, name string) {
	t.Helper()
	if _, err := c.request("DELETE", pods+"/"+name, "", nil); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) awaitGone(t *testing.T, name string) {
	t.Helper()
	testpeer.WaitFor(t, name+" to be gone", func() (bool, string) {
		p, ok := c.look(t, name)
		return !ok, p.String()
	})
}

// events returns the messages of the pod's events.
func (c *cluster) events(t *testing.T, name string) []string {
	t.Helper()
	var list struct {
		Items []struct {
			InvolvedObject  struct{ Name, FieldPath string }
			Reason, Message string
		}
	}
	c.get(t, "/api/v1/namespaces/"+namespace+"/events", &list)
	var messages []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name {
			messages = append(messages, e.InvolvedObject.FieldPath+" "+e.Reason+": "+e.Message)
		}
	}
	return messages
}

// signal sends a signal to the program of a pod's container.
func (c *cluster) signal(t *testing.T, p pod, program string, sig syscall.Signal) {
	t.Helper()
	found := 0
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range comms {
		dir := filepath.Dir(path)
		comm, _ := os.ReadFile(path)
		if !strings.HasPrefix(program, strings.TrimSpace(string(comm))) || len(comm) < 10 {
			continue
		}
		// Its host's name is the pod's.
		environ, _ := os.ReadFile(dir + "/environ")
		if !strings.Contains(string(environ), "HOSTNAME="+p.Metadata.Name+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
		found++
	}
	if found != 1 {
		t.Fatalf("found %d processes of %s in %s, want 1", found, program, p.Metadata.Name)
	}
}

// during asks cond, until d has passed, whether all is well.
func during(t *testing.T, d time.Duration, cond func() (ok bool, detail string)) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		if ok, detail := cond(); !ok {
			t.Fatal(detail)
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
