# Entry points. Anything longer than a line or two is a script in scripts/.
#
# Build output and downloaded tools go to a cache folder outside the clone (scripts/lib.sh does the
# same for scripts that are called by hand). Set SANDBOX_RUN_CACHE or CARGO_TARGET_DIR to move them.

export SANDBOX_RUN_CACHE := $(or $(SANDBOX_RUN_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sandbox-run)
export CARGO_TARGET_DIR := $(or $(CARGO_TARGET_DIR),$(SANDBOX_RUN_CACHE)/target)
# Tests at once: half as many again as cores (scripts/lib.sh says why).
export NEXTEST_TEST_THREADS := $(or $(NEXTEST_TEST_THREADS),$(shell echo $$(((3 * $$(nproc) + 1) / 2))))

PREFIX ?= /usr/local
# Left out: tests that need a Docker Engine, an OCI runtime, an image, another language, or the host alone.
QUICK := not test(/containers|docker|runc|crun|gvisor|images|warm|kernel_memory/)

.DEFAULT_GOAL := help
.PHONY: help run serve check quick one map test test-all lint coverage fuzz real bench bench-against bench-backends bench-cold bench-compile bench-load bench-reach soak steady tenants install clean

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20
	@echo "build output: $(CARGO_TARGET_DIR)"

run: ## install what is missing, then run a hello in the sandbox
	scripts/setup run
	cargo run --release -p sandbox-cli -- --lang python --code 'print("hello from the sandbox")'

serve: ## build and start sandboxd on 127.0.0.1:8080
	scripts/setup run
	cargo run --release -p sandbox-server

test: ## install what the tests need, then run them all, the QEMU guest too
	scripts/setup test
	scripts/test

check: ## the inner loop: formatting, clippy of what changed, unit tests
	cargo fmt --all --check
	cargo clippy --workspace --lib --bins -- -D warnings
	cargo nextest run --workspace --lib --bins

quick: ## native conformance and attacks, in Python, C and Bash: no containers, no guest
	scripts/setup run
	cargo nextest run -p sandbox-tests --test conformance --test attacks -E '$(QUICK)'

one: ## the tests whose names contain T, in any crate: make one T=kernel_memory
	@test -n "$(T)" || { echo "usage: make one T=part-of-a-test-name" >&2; exit 2; }
	cargo nextest run --workspace -E 'test($(T))'

map: ## rewrite the map of modules in ARCHITECTURE.md
	scripts/module-map

test-all: ## make test with every backend for every language, all of Java's warm cases, and the whole soak (hours)
	scripts/setup test
	SANDBOX_RUN_ALL_BACKENDS=1 SANDBOX_RUN_ALL_CASES=1 scripts/test
	$(MAKE) soak

lint: ## formatting, clippy, documentation, licences and bans, the second architecture
	scripts/setup lint
	scripts/lint

coverage: ## line coverage of the tests; fails under 80 %
	scripts/setup coverage
	scripts/coverage

fuzz: ## each decoder of messages for FUZZ_SECONDS (600)
	scripts/setup fuzz
	scripts/fuzz $(or $(FUZZ_SECONDS),600)

real: ## CPython's own regression tests, bare and inside, and the differences
	scripts/setup real
	cargo build -p sandbox-cli
	tests/real/cpython

bench: ## ours against bare processes and other sandboxes: time, throughput, memory; about 10 minutes
	scripts/setup bench
	cargo build --release -p sandbox-server
	cargo run --release -p sandbox-bench -- all

bench-against: ## this tree against another revision, in interleaved pairs: make bench-against REV=HEAD~1
	@test -n "$(REV)" || { echo "usage: make bench-against REV=revision [OPTIONS='--case node']" >&2; exit 2; }
	scripts/setup run
	scripts/bench-against "$(REV)" $(OPTIONS)

bench-compile: ## compiling hello: bare, new, and compiled before
	scripts/setup bench
	cargo run --release -p sandbox-bench -- compile

bench-cold: ## cold start against bare processes and bubblewrap
	scripts/setup bench
	cargo run --release -p sandbox-bench -- cold

bench-backends: ## a Python hello behind every backend, against plain docker run
	scripts/setup test
	cargo build --release -p sandbox-bench
	scripts/with-engine cargo run --release -p sandbox-bench -- backends

bench-reach: ## bytes through an allow-list, against a plain connection over loopback
	cargo run --release -p sandbox-bench -- reach

bench-load: ## a Python hello over HTTP against the library, with one client and with many
	scripts/setup bench
	cargo build --release -p sandbox-server
	cargo run --release -p sandbox-bench -- load

soak: ## 20,000 requests of all kinds to a sandboxd: every answer right, nothing grows, nothing is left
	scripts/setup test
	cargo build --release -p sandbox-server
	cargo run --release -p sandbox-bench -- soak --results bench/results

steady: ## 100,000 executions in one process; fails if memory, descriptors, cgroups or inodes grow
	scripts/setup run
	cargo run --release -p sandbox-bench -- steady --results bench/results

tenants: ## a hostile key against every endpoint for a minute: another key loses nothing, fails if its p95 is above 2x
	scripts/setup bench
	cargo build --release -p sandbox-server
	cargo run --release -p sandbox-bench -- tenants --results bench/results

install: ## build sandbox-run and copy it to PREFIX/bin (/usr/local/bin)
	cargo build --release -p sandbox-cli
	install -D -m 755 "$(CARGO_TARGET_DIR)/release/sandbox-run" "$(DESTDIR)$(PREFIX)/bin/sandbox-run"

clean: ## remove build output (downloads and tools stay)
	cargo clean
