package kubernetes_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// token is the administrator's.
const token = "test-token"

// An object is one of Kubernetes, as JSON.
type object map[string]any

// in returns what is at the path.
func (o object) in(path ...string) any {
	var v any = o
	for _, name := range path {
		switch m := v.(type) {
		case object:
			v = m[name]
		case map[string]any: // what was decoded
			v = m[name]
		default:
			return nil
		}
	}
	return v
}

func (o object) text(path ...string) string {
	s, _ := o.in(path...).(string)
	return s
}

// condition is one of a pod's or a node's status.
type condition struct{ Type, Status, Reason, Message string }

func find(conditions []condition, kind string) condition {
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	return condition{}
}

// An api is a client of the API server: requests are short and answers JSON, so
// that Kubernetes' own client, hundreds of packages, has nothing to add.
type api struct{ client *http.Client }

func newAPI() *api {
	return &api{&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
}

func (a *api) request(method, path, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, "https://127.0.0.1:6443"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if warnings := resp.Header.Values("Warning"); err == nil && len(warnings) > 0 {
		err = fmt.Errorf("%s %s: warnings: %s", method, path, strings.Join(warnings, "; "))
	}
	return answer, err
}

func (a *api) create(t *testing.T, path string, o object) {
	t.Helper()
	if _, err := a.request("POST", path+"?fieldValidation=Strict", "application/json", encode(t, o)); err != nil {
		t.Fatal(err)
	}
}

func (a *api) get(t *testing.T, path string, v any) {
	t.Helper()
	body, err := a.request("GET", path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		t.Fatal(err)
	}
}

// apply is kubectl apply --server-side, with --dry-run=server if dry.
func (a *api) apply(t *testing.T, o object, dry bool) error {
	t.Helper()
	path := fmt.Sprintf("%s/%s?fieldManager=test&force=true&fieldValidation=Strict", collection(t, o), o.text("metadata", "name"))
	if dry {
		path += "&dryRun=All"
	}
	_, err := a.request("PATCH", path, "application/apply-patch+yaml", encode(t, o))
	return err
}

// collection returns the path of the objects of o's kind, in the namespace
// hadrain unless o is in another.
func collection(t *testing.T, o object) string {
	t.Helper()
	plural := map[string]string{
		"ConfigMap": "configmaps", "Deployment": "deployments", "HorizontalPodAutoscaler": "horizontalpodautoscalers",
		"Job": "jobs", "NetworkPolicy": "networkpolicies", "PodDisruptionBudget": "poddisruptionbudgets",
		"Secret": "secrets", "Service": "services", "ServiceMonitor": "servicemonitors",
	}[o.text("kind")]
	if plural == "" {
		t.Fatalf("what is the plural of %s?", o.text("kind"))
	}
	root := "/apis/" + o.text("apiVersion")
	if o.text("apiVersion") == "v1" {
		root = "/api/v1"
	}
	in := o.text("metadata", "namespace")
	if in == "" {
		in = namespace
	}
	return root + "/namespaces/" + in + "/" + plural
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
