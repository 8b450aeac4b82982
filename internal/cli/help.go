package cli

const rootLong = `hadrain takes servers behind HAProxy out of rotation and back, on every load
balancer at once. The wanted state is kept in Consul KV; load balancers follow
it by their agent checks, also after a reload, a reboot or an outage of Consul.

SEL, the operand of most verbs, is one of
  web/web-01      a server: backend/server
  canary          a group: every server that sends this key (@canary is the same)
  'web/*-b-*'     a glob over the known rows; * and ? do not cross the slash

Known rows are those that responders report (--responder) and those that have
a value in Consul. A server's own value wins over its groups' values.

Consul is found as by Consul's own tools (CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN,
CONSUL_HTTP_TOKEN_FILE, CONSUL_CACERT, ...). Every flag is also read from a
variable, e.g. HADRAIN_KV_ROOT for --kv-root; a flag beats its variable.

Exit status: 0 done, 1 error, 2 usage (nothing written), 4 refused by a guard
(somebody else's drain, changed meanwhile, question declined; nothing written).`

const rootExample = `  hadrain init
  hadrain drain canary --reason "chg-123 canary deploy"
  hadrain status
  hadrain undrain canary`

// One of these ends the help of every verb that writes: with --ttl, without,
// and of those that delete.
const (
	safetyTTL = asks + `A key that already has this state is
left alone unless --reason or --ttl brings something new. Ending what somebody
else set needs --force.`
	safety = asks + `A key that already has this state is
left alone unless --reason brings something new. Ending what somebody else set
needs --force.`
	safetyDelete = asks + `A key without a value is left
alone. Ending what somebody else set needs --force.`

	asks = `
Shows what changes and asks; --yes does not ask, --dry-run only shows. All keys
change in one transaction, or none does. `
)

const drainLong = `Take servers out of rotation gently.

  new sessions         go to other servers
  persistent sessions  (cookie, stick-table) keep coming to this server
  open connections     go on until they end by themselves
  health checks        go on

The command returns once the state is written; it does not wait for sessions to
end. Within about one agent check interval every load balancer follows.
` + safetyTTL

const drainExample = `  hadrain drain web/web-01 --reason "kernel update" --ttl 2h
  hadrain drain canary --reason chg-123 --yes --detach --then drain
  hadrain drain 'web/*-b-*' --dry-run`

const maintLong = `Take servers out of rotation at once, for maintenance.

  new sessions         go to other servers
  persistent sessions  go to other servers, too
  open connections     go on until they end, unless haproxy.cfg says
                       "on-marked-down shutdown-sessions"
  health checks        stop

Leaving maintenance starts slowly if the server has "slowstart".
` + safetyTTL

const maintExample = `  hadrain maint web/web-01 --reason "replacing a disk" --ttl 4h`

const readyLong = `Put servers in rotation, and pin them there.

  new sessions         come, with the weight of haproxy.cfg
  persistent sessions  come
  open connections     are not touched
  health checks        go on; a server that fails them stays out

The value stays: a server that is ready by its own key ignores its groups until
hadrain clear deletes it, hadrain undrain leaves it. To end a drain without
pinning, use hadrain undrain.
` + safety

const readyExample = `  hadrain ready web/web-03 --reason "needed while canary is drained"`

const weightLong = `Put servers in rotation with a part of the weight in haproxy.cfg, as the last
argument: a whole number from 0% to 100%.

  new sessions         come in proportion; at 0% none, as in a drain
  persistent sessions  come, also at 0%
  open connections     are not touched
  health checks        go on

It ends a drain or a maintenance. HAProxy computes in whole numbers: of weight 1
(the default) every N below 100% makes 0. Static algorithms (source without
consistent hashing, static-rr) take only 0% and 100%.
` + safety

const weightExample = `  hadrain weight canary 25% --reason "ramp, step 2"`

const holdLong = `Leave HAProxy as it is, so that a person can drive it by its socket.

  new, persistent and open connections   as HAProxy has them now
  health checks                          as HAProxy has them now

A reload of HAProxy forgets what it holds: servers come back as haproxy.cfg says.
` + safetyTTL

const holdExample = `  hadrain hold web/web-01 --reason "inc-42, alice drives the socket"`

const clearLong = `Delete the value of servers or groups, whatever it is. A server then follows its
group; without a group that has a value it is ready.

  new sessions         come, unless the group says otherwise
  persistent sessions  come, too
  open connections     are not touched
  health checks        go on
` + safetyDelete

const clearExample = `  hadrain clear canary
  hadrain clear web/web-01 --force --yes`

const undrainLong = `End a drain or a maintenance by deleting its value. A server then follows its
group; without a group that has a value it is ready. Values that are neither
drain nor maint are refused (hadrain clear deletes any); ready is left alone.

  new sessions         come, unless the group says otherwise
  persistent sessions  come, too
  open connections     are not touched
  health checks        go on
` + safetyDelete

const undrainExample = `  hadrain undrain canary`

const statusLong = `Show the values in Consul with who set them, when and why, and what the
responders named by --responder tell their HAProxy. With operands, only those.

Values that are no state are shown as rejected: load balancers keep the state
before them. If Consul does not answer, what responders say is shown all the
same, and the exit status is 1.

While nothing changes, load balancers confirm their state with Consul every
10 s: at rest "last confirmed" says up to 10s ago. One that is "not yet at
index N" has not read the last change.`

const statusExample = `  hadrain status
  hadrain status 'web/*' -o wide
  hadrain status -o json | jq '.keys[] | select(.state == "drain")'`

const queryLong = `Ask a responder on its agent port exactly as HAProxy would: one line with the
keys, in order; the first that has a value answers. The option words of
agent-send (+up, -up, -weight) may come first, after --. An answer that no agent
gives is an error.`

const queryExample = `  hadrain query web/web-01 canary
  hadrain query --addr 127.0.0.1:9777 -- -weight web/web-01`

const initLong = `Write the sentinel ROOT/state/.hadrain: the proof that the prefix is meant. No
load balancer follows a prefix without it, and no other command writes to one.

Run it once for each Consul. Values that are already there stay as they are. On
a prefix that has a sentinel it says so and changes nothing.

After a loss of data, restore the values first, then run hadrain init --id UUID
with the id in the first line of any load balancer's state file: load balancers
hold on to what they have until they see that id again. If a responder named by
--responder follows another id than the one to be created, init refuses; --force
creates it all the same.`

const initExample = `  hadrain init
  hadrain init --kv-root gitlab-haproxy-agent
  hadrain init --id 6f1c7c0a-4d9e-4c65-8f0e-2b1c9a7d5e43`

const devLong = `Run everything on this machine, with nothing to prepare: a store that speaks
Consul's API, render, responder and, where HAProxy is installed, a real HAProxy
with two small backends. It prints addresses and commands to try, then a live
view, until Ctrl-C.`

const devExample = `  hadrain dev
  hadrain dev --demo
  hadrain dev --consul`
