# Hadrain. `make` lists the targets.

VERSION := $(shell git describe --always --dirty 2>/dev/null || echo devel)
# The version comes from here, so the Go command need not ask git itself, which
# fails where somebody else owns the checkout.
LDFLAGS := -s -w -X hadrain/internal/version.linked=$(VERSION)
BUILD   := go build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)'
BENCH   := .
BIN     := bin

.PHONY: help build man packages image release demo run test test-kubernetes check bench bench-render bench-responder fuzz peers haproxies clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build static binaries into bin/
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(BUILD) -o $(BIN)/hadrain ./cmd/hadrain
	CGO_ENABLED=0 $(BUILD) -o $(BIN)/hadrain-render ./cmd/render
	CGO_ENABLED=0 $(BUILD) -o $(BIN)/hadrain-responder ./cmd/responder

man: ## write man pages and completions into dist/docs/
	VERSION=$(VERSION) packaging/make man

packages: ## make .deb and .rpm for amd64 and arm64 in dist/
	VERSION=$(VERSION) packaging/make packages

image: ## make container images for amd64 and arm64 in dist/, without an engine
	VERSION=$(VERSION) packaging/make image

release: ## packages, archives, checksums, bills of materials in dist/
	VERSION=$(VERSION) packaging/make release

demo: build ## watch a real HAProxy drain servers: a story of a quarter of a minute
	.ci/peers haproxy
	bin/hadrain dev --demo

run: build ## everything on this machine, to play with, until Ctrl-C
	.ci/peers haproxy || echo 'going on without HAProxy' >&2
	bin/hadrain dev

test: ## every test, with a real Consul and a real HAProxy
	.ci/peers
	.ci/test
	.ci/fuzz 30s ./internal/agentcheck # what any peer may send

test-kubernetes: ## the pods on a real kubelet and API server (root; the first time 12 CPU-minutes of building)
	HADRAIN_TEST_REQUIRE_PEERS=1 .ci/peers
	.ci/kubernetes
	HADRAIN_TEST_KUBERNETES=1 .ci/test ./tests/kubernetes

check: ## format, vet, lint, dead code, known vulnerabilities
	.ci/check

bench: ## benchmarks, such as BENCH=Parse
	.ci/peers
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

bench-render: ## what following a change costs next to consul-template, in 2 minutes
	.ci/consul
	HADRAIN_TEST_REQUIRE_PEERS=1 go test -run '^$$' -bench . ./tests/benchrender

bench-responder: ## what a check costs against plain C, in 5 minutes; QUICK=1 for 40 s
	go run ./tests/benchresponder $(BENCHFLAGS)

fuzz: ## fuzz every target for 20 s
	.ci/fuzz

peers: ## install HAProxy from Debian, build Consul from its Go module
	.ci/peers

haproxies: ## unpack HAProxy 3.0 and 3.2 from Debian, for make test to use too
	.ci/haproxies

clean: ## remove what was built (Consul stays: it takes minutes)
	rm -rf bin dist .ci/cache
