SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
# Every go command gives the same results in every checkout, so that all share one build cache:
# -trimpath keeps the path of the checkout out of the cache keys, and cgo is on only for the race detector.
GOFLAGS        ?=
override GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
export GOFLAGS
export GOWORK := off
export CGO_ENABLED := 0
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

# Tools, pinned. Each is installed into .tmp/bin when its version changes.
tool = .tmp/tools/$(1)
BUF            := $(call tool,github.com/bufbuild/buf/cmd/buf@v1.70.0)
PROTOC_GEN_GO  := $(call tool,google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12)
PROTOC_GEN_RPC := $(call tool,connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1)
PROTOC_GEN_DOC := $(call tool,github.com/pseudomuto/protoc-gen-doc/cmd/protoc-gen-doc@v1.5.1)
CONTROLLER_GEN := $(call tool,sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0)
GOLANGCI_LINT  := $(call tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0)
PROMTOOL       := .tmp/tools/promtool@v0.316.0
TOOLS          := $(BUF) $(PROTOC_GEN_GO) $(PROTOC_GEN_RPC) $(PROTOC_GEN_DOC) $(CONTROLLER_GEN) $(GOLANGCI_LINT) $(PROMTOOL)
# Where validate.proto comes from: a Go module that holds the sources.
PROTOVALIDATE  := github.com/bufbuild/protovalidate@v1.2.2

# The modules. The last two require SpiceDB and Kubernetes itself, so go.work leaves them out.
MODULES        := gen deploy services/policy services deploy/e2e services/policy/conformance deploy/local

# The services, each a binary of its own.
SERVICES       := bin/watcher bin/store-sync bin/tuple-sync bin/implied-role bin/webhook bin/opensearch-sync
# What it takes to run everything as processes of their own, beside kube-local.
PROCESSES      := $(SERVICES) bin/nats-server bin/openfga

# What `make nightly` runs, and what `make stress` repeats how often.
PART           ?=
SLICE          ?=
PACKAGE        ?=
N              ?= 5

# Anything means that a test on servers fails when it takes longer than scripts/slow-tests.txt allows.
TIMED          ?=
# Anything means that tests on servers use the race detector, too.
RACE           ?=
RUN_TESTS      := cd services && go run ./internal/cmd/run-tests -root $(CURDIR) $(if $(TIMED),,-untimed) $(if $(RACE),-race) -suites

# What `make up` gives to `entail up`.
ARGS           ?=
# Anything means to run OpenSearch, too.
OPENSEARCH     ?=

# What `make chaos` does; SEED repeats what another run did.
MINUTES        ?= 30
SEED           ?=
NODES          ?= 3
REPLICAS       ?= 2
BLOWS          ?= all

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##### Run

.PHONY: up
up: bin/entail kube-local $(if $(OPENSEARCH),opensearch) ## Run everything on this machine until Ctrl-C (OPENSEARCH=1: also OpenSearch; ARGS="--help": all flags)
	@bin/entail up --samples deploy/samples $(if $(OPENSEARCH),--opensearch) $(ARGS)

.PHONY: clean-state
clean-state: ## Delete all data of `make up`: Kubernetes objects, streams, stores
	@scripts/clean-state.sh .entail

##### Build

.PHONY: build
build: bin/entail $(SERVICES) kube-local ## Build every binary into bin/

# Go knows best what is out of date.
.PHONY: bin/entail $(SERVICES) bin/chaos bin/nats-server bin/openfga
bin/entail:
	@scripts/build.sh services ./entail
$(SERVICES): bin/%:
	@scripts/build.sh services ./$*/cmd/$*
bin/chaos:
	@scripts/build.sh deploy/e2e ./chaos
bin/nats-server: # The servers' own programs, of the versions that the rest is tested with.
	@scripts/build.sh deploy/e2e github.com/nats-io/nats-server/v2 nats-server
bin/openfga:
	@scripts/build.sh deploy/e2e github.com/openfga/openfga/cmd/openfga openfga

.PHONY: earlier
earlier: kube-local ## Build bin/earlier/entail, the newest release, for the test of upgrades
	-@scripts/earlier.sh # Without it that test fails, and the others run.

.PHONY: kube-local
kube-local: ## Build bin/kube-local, the local Kubernetes API server (minutes, the first time)
	@deploy/local/build.sh

.PHONY: kube-node
kube-node: ## Build kube-local, and bin/kube-node and bin/cluster-dns, which run pods (minutes, the first time)
	@deploy/local/build.sh kube-local kube-node cluster-dns

.PHONY: opensearch
opensearch: ## Install bin/opensearch, OpenSearch with its security plugin (100 MB by Maven, the first time)
	@scripts/opensearch.sh

.PHONY: kubectl
kubectl: ## Build bin/kubectl, for tests, and for machines that have none
	@scripts/build-kubectl.sh

##### Ship

# What `make images` builds; all without. What `make release` builds, and for whom.
TARGETS        ?=
VERSION        ?=
PLATFORMS      ?=

.PHONY: images
images: ## Build the images of services, kube-local and the command line (TARGETS="watcher webhook")
	@$(if $(VERSION),VERSION=$(VERSION)) scripts/images.sh $(TARGETS)

.PHONY: release
release: ## Make the archives of a release in .tmp/release (VERSION=v1.2.3, PLATFORMS="linux/amd64 …")
	@scripts/release.sh '$(VERSION)' $(PLATFORMS)

##### Change

.PHONY: generate
generate: $(BUF) $(PROTOC_GEN_GO) $(PROTOC_GEN_RPC) $(CONTROLLER_GEN) .tmp/sources/$(PROTOVALIDATE) ## Generate gen/, deep copies, CRDs, the accounts of services and the rights on the bus
	.tmp/bin/buf generate
	cd services && $(CURDIR)/.tmp/bin/controller-gen object crd \
		paths=./internal/api/... output:crd:dir=$(CURDIR)/deploy/crd
	scripts/legacy-crds.sh
	cd services && go test ./internal/rbac ./internal/natsauth ./internal/deployspec -run Generated -update
	$(MAKE) docs

.PHONY: docs
docs: $(BUF) $(PROTOC_GEN_DOC) .tmp/sources/$(PROTOVALIDATE) ## Write docs/reference: kinds, query APIs, metrics, services and their rights, the command line
	.tmp/bin/buf generate --template buf.docs.yaml
	cd services && go test ./internal/reference ./entail/internal/reference -run Page -update

.PHONY: tidy
tidy: ## Tidy every module, then the workspace
	for m in $(MODULES); do (cd $$m && go mod tidy); done
	GOWORK= go work sync
	for m in $(MODULES); do (cd $$m && go mod tidy); done

.PHONY: format
format: $(BUF) $(GOLANGCI_LINT) ## Format Go and protobuf sources
	.tmp/bin/buf format --write proto
	for m in $(MODULES); do (cd $$m && $(CURDIR)/.tmp/bin/golangci-lint fmt); done

.PHONY: lint
lint: $(BUF) $(GOLANGCI_LINT) .tmp/sources/$(PROTOVALIDATE) ## Check style, architecture rules, protobuf compatibility
	.tmp/bin/buf format --diff --exit-code proto
	.tmp/bin/buf lint
	scripts/breaking.sh
	scripts/lint.sh $(MODULES)

.PHONY: verify
verify: ## Check generated files, modules, the library from outside, lint, vet: all that CI checks except tests
	@scripts/unchanged.sh $(MAKE) generate
	scripts/leftovers.sh
	scripts/modules.sh $(MODULES)
	scripts/examples.sh services/policy
	$(MAKE) alerts
	$(MAKE) lint

.PHONY: alerts
alerts: $(PROMTOOL) ## Check the alert rules: each fires when it must, and none fires without a fault
	.tmp/bin/promtool check rules --lint=all --lint-fatal deploy/observability/alerts.yaml
	.tmp/bin/promtool check config --syntax-only deploy/docker/prometheus.yaml
	cd deploy/observability && $(CURDIR)/.tmp/bin/promtool test rules alerts_test.yaml

##### Test

# What tests start as processes of their own.
TEST_SERVERS   := bin/nats-server bin/openfga kube-local opensearch

.PHONY: test
test: test-programs ## Run every test: unit, integration on real servers, end-to-end, minutes of chaos
	@$(RUN_TESTS) unit,integration,e2e

.PHONY: test-unit
test-unit: ## Run the tests that need no server
	@$(RUN_TESTS) unit

.PHONY: test-integration
test-integration: $(TEST_SERVERS) ## Run unit tests, and tests on real NATS, OpenFGA, Kubernetes and OpenSearch
	@$(RUN_TESTS) unit,integration

.PHONY: e2e
e2e: test-programs ## Run black-box tests of `entail up`, and minutes of chaos
	@$(RUN_TESTS) e2e

.PHONY: test-programs
test-programs: bin/entail $(PROCESSES) kube-local kubectl opensearch ## Build every program that tests start

.PHONY: compose-test
compose-test: $(PROCESSES) kube-local opensearch ## Test docker-compose.yaml, with stand-ins for the images of other projects (root, or Docker)
	@scripts/compose-test.sh

.PHONY: node-test
node-test: bin/entail bin/nats-server bin/openfga kube-node ## Test the overlays on a Kubernetes node (root)
	@scripts/node-test.sh

.PHONY: chaos
chaos: bin/chaos $(PROCESSES) kube-local ## Cause random failures in the whole system, and check the result (MINUTES, SEED, NODES, REPLICAS, BLOWS)
	@bin/chaos -for $(MINUTES)m $(if $(SEED),-seed $(SEED)) -nodes $(NODES) -replicas $(REPLICAS) -blows $(BLOWS)

.PHONY: mutants
mutants: $(PROCESSES) kube-local ## Put bugs into the code, and check that the tests find each (SLICE=1/4: a quarter of the bugs)
	@scripts/mutants.sh '$(SLICE)'

.PHONY: nightly
nightly: test-programs kube-node earlier bin/chaos ## Run the tests that are too long for CI (PART=chaos: one part; SLICE=1/4: a quarter of it)
	@scripts/nightly.sh '$(PART)' '$(SLICE)'

.PHONY: stress
stress: $(TEST_SERVERS) ## Repeat the tests of a package under CPU load (PACKAGE=services/tuple-sync N=5)
	@scripts/stress.sh '$(PACKAGE)' '$(N)'

.PHONY: bench
bench: $(TEST_SERVERS) bin/entail ## Measure the figures of docs/design/benchmarks.md
	@scripts/bench.sh

##### Tools

.PHONY: tools
tools: $(TOOLS) ## Install every tool into .tmp/bin

# The name of a stamp is what `go install` takes, or promtool@VERSION.
.tmp/tools/%:
	@scripts/install-tool.sh $*
	@rm -f .tmp/tools/$(firstword $(subst @, ,$*))@* && mkdir -p $(@D) && touch $@

.tmp/sources/%:
	@scripts/fetch-proto.sh $*
	@mkdir -p $(@D) && touch $@
