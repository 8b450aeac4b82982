package tests_test

import "testing"

// testSettings does what the documents say of settings that few change.
func (b *balancer) testSettings() {
	t := b.t
	one := func(document string) string {
		t.Helper()
		found := blocks(t, document, "systemdsettings_test.go")
		if len(found) != 1 {
			t.Fatalf("docs/%s has %d blocks to run, want one", document, len(found))
		}
		return found[0]
	}
	t.Run("the state in another place", func(t *testing.T) {
		b.t = t
		b.types(one("install.md")+"\ncat /srv/hadrain/state", "\n# end keys=")
		b.types("consul kv put gitlab-haproxy-agent/state/web/web-02 hold")
		b.eventually("grep", "-q", "web/web-02 *hold", "/srv/hadrain/state")
		b.eventually("sh", "-c", "hadrain query web/web-02 | grep -qx hold")
		b.eventually("sh", "-c", "hadrain query web/web-01 | grep -qx 'maint 100%'")
	})
	t.Run("another socket", func(t *testing.T) {
		b.t = t
		b.WriteFile(t, "/etc/systemd/system/hadrain-responder.socket.d/port.conf", "[Socket]\nListenStream=127.0.0.1:9770\n")
		b.types(one("upgrade.md") + "\nhadrain query --addr 127.0.0.1:9770 web/web-01")
		b.types("hadrain query web/web-01")
	})
}
