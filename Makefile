# kvfence. Each target is a command that one could type; `make` alone lists them.
#
#   make run                        a prefill node, a decode node and a gateway on this machine
#   make run ARGS='--help'          arguments of kvfence serve
#   make test SKIP=tlc,chaos        all checks but these; refused where CI=true
#
# The default build is static (CGO_ENABLED=0). Race detector runs need a C compiler and are for tests only.

GO      ?= go
BIN     := bin/kvfence
ARGS    ?=
SKIP    ?=
PART    ?=
SECONDS ?= 1800
PARTS   := $(GO) run ./impl/cmd/parts -skip '$(SKIP)' -ci '$(CI)'
SOURCES := $(shell find spec impl TLA proofs -type f -not -name '*_test.go' -not -path '*/testdata/*' 2>/dev/null)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run build native test test-fast test-long test-rdma kernels gpu-bundle gpu-check spec model proofs mutants sim bench bench-rdma soak vet fmt docs setup clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r t h; do printf '%-18s %s\n' "$$t" "$$h"; done

run: $(BIN) ## build and run prefill, decode and gateway on loopback (ARGS are its arguments)
	$(BIN) serve $(ARGS)

build: $(BIN) ## build bin/kvfence, static

native: build/modules.stamp ## build bin/kvfence-native: RDMA and GPU libraries opened at run time (a C compiler, libibverbs-dev)
	CGO_ENABLED=1 $(GO) build -trimpath -tags 'verbs cuda' -o bin/kvfence-native ./impl/cmd/kvfence

$(BIN): build/modules.stamp $(SOURCES)
	CGO_ENABLED=0 $(GO) build -trimpath -o $@ ./impl/cmd/kvfence

test: setup ## all checks; SKIP=tlc,chaos leaves parts out
	$(PARTS) -set test

test-fast: build/modules.stamp ## static build, vet, format, rules and short tests: under three minutes
	$(PARTS) -set fast

test-long: setup ## all checks with long runs: hours; PART='sim tlc' runs these; docs/long.json keeps what they came to
	$(PARTS) -set long $(PART)

test-rdma: setup ## the verbs transport in a machine with soft RoCE that it makes itself (ARGS are impl/cmd/rdma's)
	$(GO) run ./impl/cmd/rdma $(ARGS)

kernels: setup ## GPU kernels: compiled for each architecture, figures compared, run on the CPU against the reference, planted bugs (no GPU needed)
	$(PARTS) -set kernels

gpu-bundle: setup ## build/gpu-bundle.tar.gz: the GPU check for a machine with a card, at most 64 MiB; nothing is built there
	$(GO) run ./impl/cmd/kernels -require
	rm -rf build/gpu-bundle && mkdir -p build/gpu-bundle
	CGO_ENABLED=1 $(GO) build -tags cuda -trimpath -ldflags '-s -w' -o build/gpu-bundle/gpucheck ./impl/cmd/gpucheck
	cp impl/gpucheck/gpu-check.sh docs/gpu/README.md build/gpu-bundle/
	tar -C build -czf build/gpu-bundle.tar.gz gpu-bundle
	test $$(stat -c %s build/gpu-bundle.tar.gz) -le $$((64 << 20)) && ls -l build/gpu-bundle.tar.gz

gpu-check: ## on a machine with a GPU, after make gpu-bundle there or elsewhere: under 8 minutes, writes docs/gpu/CHIP-DATE.md
	@test -x build/gpu-bundle/gpucheck || { echo 'build/gpu-bundle is not there: make gpu-bundle, on any machine with a network'; exit 1; }
	build/gpu-bundle/gpu-check.sh docs/gpu

spec: setup ## the words of spec/ and the specification in TLA/
	$(PARTS) -set spec

model: setup ## the executable twin's state graph compared with TLC's, states and steps, mutants too; their speeds
	$(GO) run ./impl/cmd/model

proofs: setup ## the invariants for any size, by two solvers; guards refuted; the translation compared with TLC; the Coq theorem
	$(GO) run ./impl/cmd/prove
	$(GO) run ./impl/cmd/prove -guards -limit 20s
	$(GO) run ./impl/cmd/prove -edges
	$(GO) run ./impl/cmd/coq

mutants: setup ## guards and updates dropped one at a time in TLA+, model, proof and core (ARGS='-all -write': all of them)
	$(GO) run ./impl/cmd/mutants $(ARGS)

sim: $(BIN) ## the engine's machines in a simulated cluster (ARGS are kvfence simulate's); each step of the specification on them; planted faults
	$(BIN) simulate --scripts build $(ARGS)
	$(GO) run ./impl/cmd/lockstep replay -share 25
	$(GO) run ./impl/cmd/lockstep cover push fence restart torn flip tail life big again
	$(GO) run ./impl/cmd/plants -pinned

bench: $(BIN) ## measure transports and the whole path (ARGS are kvfence bench's)
	$(BIN) bench $(ARGS)

bench-rdma: setup ## throughput of the verbs transport beside ib_write_bw and ucx_perftest, in the machine of test-rdma
	$(GO) run ./impl/cmd/rdma -bench $(ARGS)

soak: build/modules.stamp ## separate processes under load and faults for SECONDS (1800): memory stays flat, all pages come back
	KVFENCE_SOAK_SECONDS=$(SECONDS) $(GO) test -count=1 -v -tags=chaos -run '^TestSoak' -timeout=$$(( $(SECONDS) + 600 ))s ./impl/chaos

vet: build/modules.stamp ## go vet and the rules of the repository
	$(GO) vet ./...
	$(GO) vet -tags=chaos ./impl/chaos
	$(GO) test -count=1 .

fmt: ## format all Go files
	gofmt -w spec impl model proofs rules_test.go

docs: build/modules.stamp ## rewrite what is generated: tables of spec/wire.md, vectors of spec/testdata, docs/checked.md
	$(GO) test -count=1 ./spec -run 'TestVectors|TestWireDoc' -update
	$(GO) run ./impl/cmd/checked

setup: build/modules.stamp build/tools.stamp ## what the checks need on this machine

build/go.stamp:
	@mkdir -p build
	@.ci/go-version '$(GO)'
	@touch $@

build/modules.stamp: build/go.stamp go.mod go.sum
	$(GO) mod download
	@touch $@

build/tools.stamp: .ci/tools .ci/packages
	@mkdir -p build
	@.ci/tools
	@touch $@

clean: ## remove what was built
	rm -rf bin build kernels/images/cubin/*.cubin kernels/images/cubin/sources
