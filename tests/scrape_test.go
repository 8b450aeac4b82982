package tests_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// scrape returns what Prometheus would get of the daemon that serves HTTP at addr,
// host:port, on a connection of its own.
func scrape(t testing.TB, addr string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return "", err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// valueOf returns the value of one metric in what was scraped. Its labels, if it
// has any, stand in name as they are served.
func valueOf(text, name string) (float64, error) {
	_, rest, ok := strings.Cut("\n"+text, "\n"+name+" ")
	if !ok {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(line, 64)
}

// metric is [valueOf] of what the daemon at addr serves now.
func metric(t testing.TB, addr, name string) float64 {
	t.Helper()
	text, err := scrape(t, addr)
	if err != nil {
		t.Fatal(err)
	}
	value, err := valueOf(text, name)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
