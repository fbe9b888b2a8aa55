# The front door for builders: `make` lists what there is. Rules stay thin; longer work is in .ci/ and bench/.
# CI runs `.ci/run`, which calls the same targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PREFIX ?= /usr/local
DESTDIR ?=
# 1: `make install` also makes the link zstash.
ZSTASH ?=
CARGO ?= cargo

# Build output: CARGO_TARGET_DIR if set, else the user's cache, else ./target.
cache := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
ifeq ($(origin CARGO_TARGET_DIR),undefined)
CARGO_TARGET_DIR := $(shell test -d '$(cache)' -a -w '$(cache)' && echo '$(cache)/stook/target' || echo '$(CURDIR)/target')
endif
export CARGO_TARGET_DIR
# Clippy looks for its configuration there.
export CLIPPY_CONF_DIR := $(CURDIR)/.ci

stook := $(CARGO_TARGET_DIR)/release/stook

# Of `make bench`: which pairs, and more options of `bench/run.py measure`, such as --budget, --on and --sets.
PAIRS ?= *
BENCH ?=

.PHONY: help tools build demo bench bench-full bench-pool bench-mount bench-programs test test-crash test-s3 lint fmt doc docs install ci clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

tools: ## Check that cargo, cc, python3 and GNU tar are there
	@.ci/tools

build: tools ## Build the release binary
	$(CARGO) build --release --locked -p stook-cli

demo: tools ## Archive 20,000 files, update, check, extract and compare them, with timings
	bench/demo.sh

bench: bench-programs ## Measure against other programs, about 5 minutes (PAIRS='walk*' for some)
	bench/run.py measure --pairs '$(PAIRS)' $(BENCH)

bench-full: bench-programs ## Measure on 1,290,284 files, an hour or two (BENCH='--save DATE --sets /dev/shm/DIR')
	bench/run.py measure --full --pairs '$(PAIRS)' $(BENCH)

bench-pool: bench-programs ## Measure the number of workers that stook finds against fixed ones, half an hour
	bench/run.py measure --pool --pairs '$(PAIRS)' $(BENCH)

bench-mount: bench-programs ## Measure mounted archives, half an hour; needs root (BENCH='--set arc10k' for minutes)
	bench/run.py measure --mount --pairs '$(PAIRS)' $(BENCH)

bench-programs: tools
	$(CARGO) build --release --locked -p stook-cli -p stook-testkit

test: tools ## Run all tests, and list what could not be tested here
	@.ci/test-tools
	@CARGO='$(CARGO)' .ci/test

test-crash: tools ## Kill the program at 200 points and see that nothing is lost
	STOOK_CRASH_POINTS=200 $(CARGO) test --locked -p stook-cli --test it crash -- --nocapture
	STOOK_CRASH_POINTS=20 $(CARGO) test --locked -p stook-cli --test it mount_kills -- --nocapture

test-s3: tools ## Test against versitygw, an object store that checks signatures; it is built first, in ten minutes
	STOOK_VERSITYGW="$$(.ci/versitygw)" $(CARGO) test --locked -p stook-store --test it versitygw -- --nocapture

lint: tools ## Check format, clippy, documentation, licences and that the fuzz targets compile
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked
	@if $(CARGO) deny --version >/dev/null 2>&1; \
	  then $(CARGO) deny --locked --config .ci/deny.toml check bans licenses sources; \
	  else echo 'skipped: cargo deny is not installed'; fi
	@if test -f fuzz/Cargo.toml; \
	  then $(CARGO) check --manifest-path fuzz/Cargo.toml --all-targets; \
	  else echo 'skipped: there are no fuzz targets'; fi

fmt: ## Format the sources
	$(CARGO) fmt --all

doc: tools ## Build the reference of the crates
	$(CARGO) doc --workspace --no-deps --locked

docs: ## Write docs/commands.md anew from the program's own definitions
	$(CARGO) run --quiet --locked -p stook-cli -- reference >docs/commands.md.new
	mv docs/commands.md.new docs/commands.md

install: build ## Install the program, man pages and completions below PREFIX (/usr/local) and DESTDIR (ZSTASH=1: also as zstash)
	ZSTASH='$(ZSTASH)' .ci/install '$(stook)' '$(DESTDIR)$(PREFIX)'

ci: ## Run what CI runs
	.ci/run

clean: ## Remove the build output
	$(CARGO) clean
