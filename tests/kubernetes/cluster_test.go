package kubernetes_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

const (
	namespace = "hadrain"
	node      = "n1"
	// nodeIP is the address of the bridge that the pods are on, and with it the
	// node's, where Consul and the servers behind HAProxy listen.
	nodeIP  = "198.18.8.1"
	podCIDR = "198.18.8.0/24"
)

// A cluster is an API server with a kubelet. There is no scheduler and no
// controller: the tests make the pods, and say on which node they are.
type cluster struct {
	*api
	dir string // in memory
}

// newCluster starts one and waits until it can run pods.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{dir: workDir(t)}
	shell(t, "mount --make-rshared /; ip link set lo up; ip link add hadrain0 type bridge; ip addr add "+nodeIP+"/24 dev hadrain0; ip link set hadrain0 up; echo 1 >/proc/sys/net/ipv4/ip_forward")
	c.startAPI(t)
	c.startKubelet(t)
	c.create(t, "/api/v1/namespaces", object{
		"kind": "Namespace", "apiVersion": "v1",
		"metadata": object{"name": namespace, "labels": object{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}},
	})
	return c
}

// workDir returns a directory in memory.
func workDir(t *testing.T) string {
	t.Helper()
	dir := testpeer.Dir(t)
	shell(t, "mount -t tmpfs -o size=4g tmpfs "+dir)
	t.Cleanup(func() { shell(t, "umount --lazy "+dir) })
	return dir
}

// shell runs a script that must succeed, and returns what it printed.
func shell(t *testing.T, script string) string {
	t.Helper()
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// start starts a program that logs a lot. Its last lines are shown if the test
// fails.
func (c *cluster) start(t *testing.T, name string, args ...string) *testpeer.Process {
	t.Helper()
	path := filepath.Join(c.dir, name+".log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the program has its own copy by then
	t.Cleanup(func() {
		if data, _ := os.ReadFile(path); t.Failed() {
			t.Logf("%s: ...%s", path, data[max(0, len(data)-4000):])
		}
	})
	cmd := exec.Command(testpeer.Need(t, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	return testpeer.Start(t, cmd)
}

func (c *cluster) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "@DIR@", c.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startAPI starts etcd and the API server, on their own loopback.
func (c *cluster) startAPI(t *testing.T) {
	t.Helper()
	const etcd = "http://127.0.0.1:2379"
	c.start(t, "etcd", "--data-dir", c.dir+"/etcd", "--unsafe-no-fsync",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", "http://127.0.0.1:2380")
	key := c.write(t, "sa.key", signingKey(t))
	server := c.start(t, "kube-apiserver",
		"--etcd-servers="+etcd, "--cert-dir="+c.dir+"/certs", "--bind-address=127.0.0.1", "--secure-port=6443", "--advertise-address="+nodeIP,
		"--service-account-issuer=https://hadrain.invalid", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--token-auth-file="+c.write(t, "tokens.csv", token+",admin,1,system:masters\n"), "--authorization-mode=AlwaysAllow",
		"--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount")
	c.api = newAPI()
	testpeer.WaitFor(t, "the API server to be ready", func() (bool, string) {
		select {
		case <-server.Done():
			t.Fatal("kube-apiserver exited")
		default:
		}
		body, err := c.request("GET", "/readyz", "", nil)
		return err == nil && string(body) == "ok", fmt.Sprint(err)
	})
}

// signingKey returns a new key for the tokens of service accounts.
func signingKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// startKubelet starts containerd with our images, and the kubelet, and waits
// until its node is registered.
func (c *cluster) startKubelet(t *testing.T) {
	t.Helper()
	c.write(t, "cni/10-hadrain.conflist", cniConfig)
	c.start(t, "containerd", "-c", c.write(t, "containerd.toml", containerdConfig))
	ctr := testpeer.Need(t, "ctr")
	testpeer.WaitFor(t, "containerd to answer", func() (bool, string) {
		out, err := exec.Command(ctr, "-a", c.dir+"/c.sock", "version").CombinedOutput()
		return err == nil, string(out)
	})
	for _, image := range images(t, c.dir) {
		shell(t, fmt.Sprintf("%s -a %s/c.sock -n k8s.io images import %s", ctr, c.dir, image))
	}
	kubelet := c.start(t, "kubelet",
		"--config="+c.write(t, "kubelet.yaml", kubeletConfig), "--kubeconfig="+c.write(t, "kubeconfig", kubeconfig),
		"--root-dir="+c.dir+"/kubelet", "--cert-dir="+c.dir+"/kubelet/pki", "--hostname-override="+node, "--node-ip="+nodeIP)
	testpeer.WaitFor(t, "the node to be ready", func() (bool, string) {
		select {
		case <-kubelet.Done():
			t.Fatal("kubelet exited")
		default:
		}
		body, err := c.request("GET", "/api/v1/nodes/"+node, "", nil)
		if err != nil {
			return false, err.Error()
		}
		var n struct {
			Status struct{ Conditions []condition }
		}
		if err := json.Unmarshal(body, &n); err != nil {
			t.Fatal(err)
		}
		ready := find(n.Status.Conditions, "Ready")
		return ready.Status == "True", ready.Message
	})
}

const cniConfig = `{"cniVersion": "0.4.0", "name": "hadrain", "plugins": [
	{"type": "bridge", "bridge": "hadrain0", "isGateway": true, "ipMasq": false,
	 "ipam": {"type": "host-local", "ranges": [[{"subnet": "` + podCIDR + `"}]], "dataDir": "@DIR@/ipam", "routes": [{"dst": "0.0.0.0/0"}]}}]}`

// The first two plugin settings: nobody here may lower a process's oom score,
// and there need not be an AppArmor.
const containerdConfig = `version = 2
root = "@DIR@/containerd"
state = "@DIR@/containerd-run"
[grpc]
  address = "@DIR@/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  sandbox_image = "localhost/pause:test"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "@DIR@/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
`

// No cgroups of its own and no eviction, as it shares the machine; a short sync,
// as a Secret's change is seen at one.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
clusterDNS: ["` + nodeIP + `"]
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
address: 127.0.0.1
healthzBindAddress: 127.0.0.1
readOnlyPort: 0
containerRuntimeEndpoint: unix://@DIR@/c.sock
podLogsDir: @DIR@/podlogs
volumePluginDir: @DIR@/volplugins
localStorageCapacityIsolation: false
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
serverTLSBootstrap: false
resolvConf: ""
syncFrequency: 2s
`

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: ` + token + `}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
