# Every target does the setup that it needs, and only what is missing. `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:
# With it, every process would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(or $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done),python3)
VENV := .venv
PY := $(VENV)/bin/python
UV := $(VENV)/bin/uv
READY := $(VENV)/.offing-ready
TRAIN_READY := $(VENV)/.offing-train-ready
PEERS_READY := $(VENV)/.offing-peers-ready
# Installed without some of what they require: UNREACHED in deploy/write_locks.py.
PARTIAL := deepagents|langgraph-reflection|open-deep-research
# Every package comes from a lock file as a wheel whose hash is checked, so no package is built from source.
LOCKED := --no-deps --require-hashes --only-binary :all:
PIP_INSTALL := $(PY) -m pip install -q --disable-pip-version-check
CPU_TORCH := $(shell sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements-cpu.lock)
UV_INSTALL := $(UV) pip install -q --python $(PY)
# With node's default of about 4 GiB, pyright empties its caches again and again and takes much longer.
PYRIGHT_MEMORY := --max-old-space-size=8192
NPM_FLAGS := --ignore-scripts --no-audit --no-fund --loglevel=error
T ?=
WEB ?=
PARTS ?=
PROCESSES ?= 4
MOMENTS ?= 20
JOBS ?= 1
TIMES ?= 10
BUSY ?= 3

ifneq ($(wildcard frontend/package.json),)
PAGE := frontend/dist/index.html
NODE_READY := frontend/node_modules/.offing-ready
PAGE_SOURCES := $(shell find frontend \( -name node_modules -o -name dist -o -name '.*' \) -prune -o -type f -print)
endif

.PHONY: help setup ready up test vitest check lock demo bench screens chaos repeat loop results baselines traces

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(READY) $(PAGE) ## create the environment in .venv and build the web UI
	@echo "› setup is complete"

ready: setup $(TRAIN_READY) $(PEERS_READY) $(NODE_READY) ## install what checks and tests need

up: setup ## start everything and print a login link; Ctrl-C stops it
	@exec $(VENV)/bin/offing up

test: $(READY) $(TRAIN_READY) $(PEERS_READY) $(NODE_READY) $(PAGE) ## install what the tests need and run all tests on private servers; T=path selects tests, WEB=no leaves out those of the web UI
	@[ -n "$(T)$(SKIP_MISSING)" ] || tests/install-programs
	@echo "› testing the backend"
	@$(VENV)/bin/pytest $(or $(T),-n $(PROCESSES) --durations=40 --durations-min=10)
	@[ -n "$(T)" ] || [ "$(WEB)" = no ] || $(MAKE) --no-print-directory vitest

vitest: $(NODE_READY) ## test the web UI without a server
	@if [ -n "$(NODE_READY)" ]; then echo "› testing the web UI"; cd frontend && npm test; fi

check: $(READY) $(TRAIN_READY) $(PEERS_READY) $(NODE_READY) ## check lint, format, types, import rules and words
	@echo "› ruff" && $(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check .
	@echo "› import rules" && $(VENV)/bin/lint-imports
	@echo "› words of the glossary" && $(PY) -m tests.glossary.words
	@echo "› pyright" && NODE_OPTIONS="$(PYRIGHT_MEMORY)" $(VENV)/bin/pyright
	@if [ -n "$(NODE_READY)" ]; then echo "› biome and tsc" && cd frontend && npm run --silent check; fi

lock: $(READY) ## write the lock files again, with hashes; ARGS="--upgrade-package redis" upgrades one package
	@exec $(PY) deploy/write_locks.py $(ARGS)

demo: setup ## ask a question about a folder of real documents
	@exec ./deploy/demo

bench: $(READY) $(TRAIN_READY) ## measure Offing and bare LangGraph and write docs/benchmarks.md; PARTS="turns export" selects parts
	@exec $(PY) -m tests.bench $(if $(PARTS),$(PARTS) --write)

screens: setup ## check every screen of the web UI in a browser and write docs/ui; ARGS="--only run- --shots DIR" selects screens
	@exec $(PY) -m tests.e2e.screens $(or $(ARGS),--shots ../docs/ui)

loop: $(READY) $(TRAIN_READY) ## train a planner from scratch on its own rollouts and evaluate it; SEEDS="0 1 2", SPLIT=unseen evaluates on compositions that no training question has
	@exec $(PY) -m tests.results.closed_loop $(if $(SPLIT),--split $(SPLIT)) $(SEEDS)

results: $(READY) $(TRAIN_READY) ## test the claim of each algorithm; ONLY="eapo hae" SEEDS="0 1" select runs, JOBS=2 runs two at a time
	@exec $(PY) -m tests.results --at-once $(JOBS) $(if $(ONLY),--only $(ONLY)) $(if $(SEEDS),--seeds $(SEEDS))

baselines: $(READY) $(TRAIN_READY) ## what an oracle, random calls, a greedy heuristic and counting reach, by difficulty
	@exec $(PY) -m tests.results.baselines

traces: $(READY) $(TRAIN_READY) ## compare what runs store with recorded cases, with a crash at every transaction; ONLY="forked" selects cases
	@exec $(PY) -m tests.traces --check $(if $(ONLY),--only $(ONLY))

chaos: $(READY) $(TRAIN_READY) ## kill every process at MOMENTS random moments per fault
	@exec $(VENV)/bin/pytest tests/chaos --moments $(MOMENTS)

repeat: $(READY) $(TRAIN_READY) $(PEERS_READY) ## run the tests of T TIMES times while BUSY processes keep the CPU busy; T="tests/chaos -k killed" selects tests
	@exec $(PY) -m tests.repeat --times $(TIMES) --busy $(BUSY) $(or $(T),-n $(PROCESSES))

$(PY):
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) was not found. Install Python 3.11 or later, or pass PYTHON=path."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $$($(PYTHON) --version) is too old; 3.11 or later is needed. Pass PYTHON=path/to/python3.11."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "make: this Python cannot create environments. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@echo "› creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(READY): requirements.lock requirements-build.lock pyproject.toml | $(PY)
	@echo "› installing Python packages into $(VENV)"
	@$(PIP_INSTALL) $(LOCKED) -r requirements-build.lock
	@$(UV_INSTALL) $(LOCKED) -r requirements.lock \
	  || { echo "› uv failed; trying pip, which is slower and checks the same hashes"; \
	       $(PIP_INSTALL) $(LOCKED) -r requirements.lock; }
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(TRAIN_READY): requirements-train.lock requirements-cuda.lock requirements-cpu.lock | $(READY)
	@echo "› installing PyTorch and its dependencies into $(VENV)"
	@if [ -n "$(CPU_TORCH)" ] && $(PIP_INSTALL) --dry-run --no-index --no-deps "$(CPU_TORCH)" >/dev/null 2>&1; then \
	  $(PIP_INSTALL) $(LOCKED) --no-index -r requirements-cpu.lock; fi
	@$(PIP_INSTALL) $(LOCKED) -r requirements-train.lock
	@if $(PY) -c 'import importlib.metadata as m, sys; sys.exit("nvidia-" not in " ".join(m.requires("torch") or ()))'; then \
	  $(PIP_INSTALL) $(LOCKED) -r requirements-cuda.lock; fi
	@! $(PY) -m pip check --disable-pip-version-check | grep -vE '^(No broken|($(PARTIAL)) )'
	@touch $@

$(PEERS_READY): requirements-peers.lock | $(READY)
	@echo "› installing third-party graphs for the tests into $(VENV)"
	@$(PIP_INSTALL) $(LOCKED) -r requirements-peers.lock
	@touch $@

$(NODE_READY): frontend/package-lock.json
	@command -v npm >/dev/null || { echo "make: npm was not found. Install node 20.19 or later, which builds the web UI."; exit 1; }
	@node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' || \
	  { echo "make: node $$(node --version) is too old; 20.19 or later is needed."; exit 1; }
	@echo "› installing the packages of the web UI"
	@cd frontend && npm ci $(NPM_FLAGS)
	@touch $@

$(PAGE): $(PAGE_SOURCES) $(NODE_READY)
	@echo "› building the web UI"
	@cd frontend && npm run --silent build
	@touch $@
