# Copy it to /etc/consul.d/ of a load balancer's agent, then consul reload: the
# fleet's responders can be found as hadrain-responder.service.consul. The port
# is HTTP's; agent checks stay on the loopback.
services {
  name = "hadrain-responder"
  port = 9779
  checks = [{
    name     = "a state is loaded"
    http     = "http://127.0.0.1:9779/readyz"
    interval = "10s"
    timeout  = "2s"
  }]
}

services {
  name = "hadrain-render"
  port = 9778
  checks = [{
    name     = "Consul was read since the start"
    http     = "http://127.0.0.1:9778/readyz"
    interval = "10s"
    timeout  = "2s"
  }]
}
