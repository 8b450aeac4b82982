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

// namespace is where the pods are.
const namespace = "hadrain"

// A network is a bridge with a node and its pods.
type network struct {
	node    string // the node's name
	address string // the node's, which the bridge has; Consul and servers listen there, too
	bits    string
	subnet  string // of the pods
	route   string
	port    int // of the kubelet's health; it is followed by its own
}

var (
	ipv4 = network{"n4", "198.18.8.1", "24", "198.18.8.0/24", "0.0.0.0/0", 10400}
	ipv6 = network{"n6", "fd00:8::1", "64", "fd00:8::/64", "::/0", 10600}
)

// A cluster is an API server with two nodes, one of each address family. There
// is no scheduler and no controller: the tests make the pods, and say on which
// node they are.
type cluster struct {
	*api
	dir string // in memory
}

// newCluster starts one and waits until it can run pods.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{dir: workDir(t)}
	// What kubelet, containerd and the network's plugins write where no setting
	// leads away from goes into memory, too.
	shell(t, "mount --make-rshared /; for dir in /run /var/lib /var/log; do mount -t tmpfs tmpfs $dir; done; ip link set lo up")
	for _, n := range []network{ipv4, ipv6} {
		shell(t, strings.NewReplacer("NODE", n.node, "ADDRESS", n.address+"/"+n.bits).Replace(
			`ip link add br-NODE type bridge; echo 0 >/proc/sys/net/ipv6/conf/br-NODE/accept_dad; ip addr add ADDRESS dev br-NODE; ip link set br-NODE up`))
	}
	c.startAPI(t)
	archives := images(t, c.dir)
	for _, n := range []network{ipv4, ipv6} {
		c.startNode(t, n, archives)
	}
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
func start(t *testing.T, dir, name string, args ...string) *testpeer.Process {
	t.Helper()
	path := filepath.Join(dir, name+".log")
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

// write makes a file in dir, in whose text @DIR@ is dir.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "@DIR@", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startAPI starts etcd and the API server, on their own loopback.
func (c *cluster) startAPI(t *testing.T) {
	t.Helper()
	const etcd = "http://127.0.0.1:2379"
	start(t, c.dir, "etcd", "--data-dir", c.dir+"/etcd", "--unsafe-no-fsync",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", "http://127.0.0.1:2380")
	key := write(t, c.dir, "sa.key", signingKey(t))
	server := start(t, c.dir, "kube-apiserver",
		"--etcd-servers="+etcd, "--cert-dir="+c.dir+"/certs", "--bind-address=127.0.0.1", "--secure-port=6443", "--advertise-address="+ipv4.address,
		"--service-account-issuer=https://hadrain.invalid", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--token-auth-file="+write(t, c.dir, "tokens.csv", token+",admin,1,system:masters\n"), "--authorization-mode=AlwaysAllow",
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

// startNode starts containerd with the images, and the kubelet, and waits until
// the node is ready.
func (c *cluster) startNode(t *testing.T, n network, archives []string) {
	t.Helper()
	dir := filepath.Join(c.dir, n.node)
	words := strings.NewReplacer("NODE", n.node, "ADDRESS", n.address, "SUBNET", n.subnet, "ROUTE", n.route,
		"HEALTHPORT", fmt.Sprint(n.port), "KUBELETPORT", fmt.Sprint(n.port+1))
	write(t, dir, "cni/10-hadrain.conflist", words.Replace(cniConfig))
	start(t, dir, "containerd", "-c", write(t, dir, "containerd.toml", containerdConfig))
	ctr := testpeer.Need(t, "ctr")
	testpeer.WaitFor(t, "containerd to answer", func() (bool, string) {
		out, err := exec.Command(ctr, "-a", dir+"/c.sock", "version").CombinedOutput()
		return err == nil, string(out)
	})
	for _, archive := range archives {
		shell(t, fmt.Sprintf("%s -a %s/c.sock -n k8s.io images import %s", ctr, dir, archive))
	}
	kubelet := start(t, dir, "kubelet",
		"--config="+write(t, dir, "kubelet.yaml", words.Replace(kubeletConfig)), "--kubeconfig="+write(t, dir, "kubeconfig", kubeconfig),
		"--root-dir="+dir+"/kubelet", "--cert-dir="+dir+"/kubelet/pki", "--hostname-override="+n.node, "--node-ip="+n.address)
	testpeer.WaitFor(t, "the node to be ready", func() (bool, string) {
		select {
		case <-kubelet.Done():
			t.Fatal("kubelet exited")
		default:
		}
		body, err := c.request("GET", "/api/v1/nodes/"+n.node, "", nil)
		if err != nil {
			return false, err.Error()
		}
		var status struct {
			Status struct{ Conditions []condition }
		}
		if err := json.Unmarshal(body, &status); err != nil {
			t.Fatal(err)
		}
		ready := find(status.Status.Conditions, "Ready")
		return ready.Status == "True", ready.Message
	})
}

const cniConfig = `{"cniVersion": "0.4.0", "name": "hadrain", "plugins": [
	{"type": "bridge", "bridge": "br-NODE", "isGateway": true, "ipMasq": false,
	 "ipam": {"type": "host-local", "ranges": [[{"subnet": "SUBNET"}]], "dataDir": "@DIR@/ipam", "routes": [{"dst": "ROUTE"}]}}]}`

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
clusterDNS: ["ADDRESS"]
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
address: 127.0.0.1
healthzBindAddress: 127.0.0.1
healthzPort: HEALTHPORT
port: KUBELETPORT
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
