// Package kubernetes validates what units/kubernetes has, as part of make test,
// and runs its pods on a real kubelet, with a real API server, containerd and
// Consul, as make test-kubernetes.
//
// There everything is in mount, network and process namespaces of its own, and what
// it writes is in memory: nothing is left when it ends, however it ends.
package kubernetes_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"hadrain/internal/testpeer"
)

// gate is "1" where somebody wants these tests, which take minutes and need
// what .ci/kubernetes builds, and "inside" within the namespaces.
const gate = "HADRAIN_TEST_KUBERNETES"

// slow are the tests behind the gate.
const slow = "^(TestKubernetes|TestHelmEqualsKustomize|TestHelmRefuses|TestImagesAreReproducible)$"

// cgroups is where containerd puts the cgroups of containers; the namespaces
// do not cover them.
const cgroups = "/sys/fs/cgroup/*/k8s.io"

func TestMain(m *testing.M) {
	flag.Parse()
	switch os.Getenv(gate) {
	case "":
		// Not skipped by themselves: a skipped test is what a machine lacks.
		if err := flag.Set("test.skip", slow); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	case "inside":
		os.Exit(m.Run())
	}
	code, err := isolated()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// isolated runs this program again, as process 1 of namespaces of its own, and
// returns its exit status.
func isolated() (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	before, err := filepath.Glob(cgroups)
	if err != nil {
		return 0, err
	}
	args := []string{"--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", self}
	cmd := exec.Command("unshare", append(args, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), gate+"=inside")
	if os.Getenv("HADRAIN_TEST_TIMEOUT") == "" {
		cmd.Env = append(cmd.Env, "HADRAIN_TEST_TIMEOUT=2m") // a kubelet takes its time
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); cmd.ProcessState == nil {
		return 0, fmt.Errorf("making namespaces (root is needed): %w", err)
	}
	return cmd.ProcessState.ExitCode(), removeCgroups(before)
}

// removeCgroups removes the cgroups of the containers, all of which are dead,
// but none that was there before: this machine may be a node itself.
func removeCgroups(before []string) error {
	roots, err := filepath.Glob(cgroups)
	if err != nil {
		return err
	}
	for _, root := range append(roots, "/sys/fs/cgroup/k8s.io") {
		if slices.Contains(before, root) {
			continue
		}
		if err := testpeer.RemoveCgroup(root); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
