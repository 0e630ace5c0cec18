# make lists the targets.
GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help
help: ## this list
	@if [ -t 1 ]; then on='\033[36m' off='\033[0m'; fi; \
	awk -F':.*## ' -v on="$$on" -v off="$$off" '/^[a-z-]+:.*## /{printf "  %s%-10s%s %s\n", on, $$1, off, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## bin/glmbatch, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/glmbatch ./cmd/glmbatch

.PHONY: demo
demo: ## the main job on embedded data: 1,000 prompts into out/
	$(GO) run ./cmd/glmbatch run --demo --out out --overwrite

.PHONY: man
man: ## manual pages of all commands into bin/man/man1 (then: man -M bin/man glmbatch-run)
	$(GO) run ./cmd/glmbatch man --dir bin/man/man1

.PHONY: test
test: ## all tests
	$(GO) test ./...

# Packages that start goroutines, in themselves or in their tests, also run with the race
# detector, but for whole jobs, which take five times as long under it (SHORT= runs them
# too). The reference that kernels are compared with is one thread's: it is not watched.
SHORT ?= -short
.PHONY: race
race: ## the tests of packages with goroutines, with the race detector (SHORT= for whole jobs too)
	$(GO) test -race $(SHORT) -timeout=20m -gcflags=glmbatch/kernels/kerneltest=-race=false $$(sh .ci/raced)

.PHONY: lint
lint: ## gofmt, columns, vet, staticcheck
	@sh .ci/columns
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

.PHONY: golden
golden: ## rewrite the golden files of tests
	$(GO) test $$(git grep -lE '"glmbatch/golden"|"update"' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|') -update

.PHONY: bench
bench: ## speed and memory, printed as Go benchmark lines
	$(GO) test -run='^$$' -bench=. -benchmem ./...

# Minimising an input that only covers more takes up to a minute of silence for each:
# once is enough.
FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## each fuzz target for 20 s (FUZZTIME=10m)
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list='^Fuzz' $$p | grep ^Fuzz); do \
		echo "$$p $$f"; $(GO) test -run='^$$' -fuzz="^$$f$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=1x $$p || exit 1; done; done

# The advisories come over the network: where they cannot be had, that is said, and
# is not a failure of the program.
.PHONY: vuln
vuln: ## known vulnerabilities that the program can reach
	@bash .ci/vuln

.PHONY: kills
kills: ## 1,000 SIGKILLs of jobs at random moments, and at calls that change files (needs strace)
	GLMBATCH_KILLS=1000 GLMBATCH_KILL_CALLS=20 $(GO) test ./pipeline -run='^TestKills$$' -v -timeout=2h

.PHONY: disturbed
disturbed: ## jobs told to stop 100 times, system calls that fail (needs strace), and 1 GiB through a bad object store
	GLMBATCH_TERMS=100 GLMBATCH_FAULTS=7 GLMBATCH_S3_MIB=1024 $(GO) test ./cmd/glmbatch -run='^(TestTerms|TestFaults|TestBigObjects)$$' -v -timeout=2h

.PHONY: interop
interop: ## check files with DuckDB, pyarrow, pandas, polars and tokenizers (makes .venv)
	bash interop/interop.sh
	bash interop/tokenizer.sh

ROWS ?= 1600
.PHONY: parameters
parameters: ## check sampling parameters against numpy: 28,000 random tokens (ROWS=1600; interop has 400)
	ROWS=$(ROWS) bash interop/interop.sh parameters

.PHONY: deploy-check
deploy-check: ## check the files of deploy/ against systemd, Kubernetes' schema and bash
	bash deploy/check.sh

.PHONY: slurm-test
slurm-test: build ## run deploy/slurm on a Slurm of one node, a task killed (root; slurm-wlm, munge, pyarrow)
	bash deploy/slurm/test.sh

.PHONY: conformance
conformance: ## pass every kind of Parquet column, and damaged files, through (SPARK=1, JOBS=all, MUTANTS=1000)
	bash interop/conformance.sh

.PHONY: hostile
hostile: ## give damaged files of every format to the program, with 1 GiB and 20 s each (COUNT=1000)
	bash interop/hostile.sh

.PHONY: together
together: ## run commands on one path at once, and among another user's links (root; TIMES=100)
	bash interop/together.sh

.PHONY: kernels
kernels: ## compile the CUDA kernels whose sources changed, for all architectures (nvcc from the PATH or PyPI)
	bash kernels/cuda/build.sh
	$(GO) generate ./kernels/cuda/plan

.PHONY: guide
guide: ## compile the guides' module (Rust 1.96, see pipeline/guide/wasm/build.sh)
	bash pipeline/guide/wasm/build.sh

# cu and NVML are C: their headers' warnings are not ours.
CUDA = CGO_ENABLED=1 CGO_CFLAGS="-w -I$(CURDIR)/kernels/cuda/driver/include -I$$(bash kernels/cuda/build.sh headers)" \
	CGO_LDFLAGS="-L$(CURDIR)/kernels/cuda/driver/stub"

.PHONY: cuda
cuda: ## bin/glmbatch with the CUDA device; starts anywhere
	$(CUDA) $(GO) build -tags cuda -trimpath -ldflags='-s -w' -o bin/glmbatch ./cmd/glmbatch

.PHONY: cuda-test
cuda-test: ## vet and test what the tag cuda adds; the device's own suite needs a GPU
	$(CUDA) $(GO) vet -tags cuda ./kernels/cuda/... ./cmd/glmbatch
	$(CUDA) $(GO) test -tags cuda ./kernels/cuda/...

.PHONY: sanitize
sanitize: ## the device suite under compute-sanitizer's memcheck and racecheck (needs a GPU)
	$(CUDA) GO=$(GO) bash kernels/cuda/sanitize.sh

.PHONY: notices
notices: ## THIRD_PARTY.txt: the libraries that the program links, and their licences
	bash .ci/notices > THIRD_PARTY.tmp && mv THIRD_PARTY.tmp THIRD_PARTY.txt

.PHONY: clean
clean: ## remove what the targets made
	rm -rf bin out .venv .cache
