# Every target sets up what it needs. Python 3.11 or newer, make and a POSIX shell are enough.

.DEFAULT_GOAL := help
.PHONY: help run serve test beside check slow quick drills test-latest static fresh pytest third-party format lint types layers docs docs-check site coverage bench outcome eval-local clients lock release clean

PYTHON ?= python3.11
# Another interpreter gets an environment of its own: make test PYTHON=python3.13
NAMED := $(filter-out python3.11,$(PYTHON))
VERSION := $(if $(NAMED),$(shell $(NAMED) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null))
PYTHONS := $(or $(NAMED),python3.11 python3.12 python3.13 python3 python)
VENV ?= .venv$(if $(NAMED),-python$(VERSION))
THIRD_PARTY ?= $(VENV)-third-party
DOCS ?= $(VENV)-docs
# More than small machines have cores: for a good half of their time, tests wait for other programs.
JOBS ?= 5
QUICK ?= tests/kernel tests/tools tests/agents/test_create_deep_agent.py tests/agents/test_tool_errors.py
DRILLS := $(addprefix tests/,agents/test_chaos.py agents/test_context_crashes.py agents/test_context_histories.py agents/test_long_runs.py \
  backends/test_against_a_dict.py cli/session/test_crash_drill.py mcp/test_processes.py middleware/test_archive.py sandbox/test_watchdog.py server/test_clocks.py undo/test_drill.py)
ARGS ?=
# Which of the tests, as the targets below say.
SUITE :=

# Many tests start programs. Without bytecode, each of these would compile the library anew.
export PYTHONDONTWRITEBYTECODE =

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# A lock names everything. An older pip that resolves anyway asks for the newest release of what a package wants with an extra.
LOCKED := install --no-deps --require-hashes -r
# Of the environment in use: pyproject.toml names the usual one, for editors.
PYRIGHT := PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python
UV_VERSION := 0.13.9
UV := $(VENV)/uv/bin/uv
UV_INSTALL := $(UV) pip install --quiet --no-deps --python

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

run: $(VENV)/.run ## Watch an agent do a small real job on real files
	@$(BIN)/python -m deepagents_cli first-run $(ARGS)

# Without a model of yours, a small one is fetched first, once.
serve: $(VENV)/.serve ## Serve an agent on http://localhost:2024, with the small local model or DEEPAGENTS_MODEL
	@test -n "$$DEEPAGENTS_MODEL" || $(BIN)/deepagents models pull >/dev/null
	@cd examples/serve && $(abspath $(BIN))/deepagents serve $(ARGS)

test: $(VENV)/.dev ## Check format, lint, types, layers, documents, and run all tests but the slow ones
	@$(MAKE) --no-print-directory --jobs=2 beside pytest SUITE='-m "not slow"'

# What runs on one core while the tests wait.
beside:
	@$(MAKE) --no-print-directory static
	@$(MAKE) --no-print-directory $(VENV)/.fresh
	@$(MAKE) --no-print-directory site

check: test ## The same as test

# Node gives new objects so little memory that pyright spends a quarter of its time on moving them.
static types: export NODE_OPTIONS = --max-semi-space-size=64

static: $(VENV)/.dev
	@$(BIN)/ruff format --check --quiet . || { echo "Run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(PYRIGHT)
	@$(BIN)/mypy typing_tests

slow: $(VENV)/.dev $(THIRD_PARTY)/.ready ## Run the slow tests: whole servers, terminals, sandboxes, packages of others; the other colour of each test
	@$(MAKE) --no-print-directory --jobs=2 third-party pytest SUITE='-m slow'

fresh: ## Check that the locks install with the oldest pip of each Python that is here, without a cache
	@sh requirements/fresh.sh $(LOCKED)

pytest: $(VENV)/.dev ## Run the tests alone: make pytest ARGS="tests/kernel -x"
	@$(BIN)/python -m pytest --jobs $(JOBS) $(SUITE) $(ARGS)

quick: $(VENV)/.dev ## Check the inner loop in under 90 seconds: lint, and one quick test file for each part
	@$(BIN)/ruff format --check --quiet . || { echo "Run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/python -m pytest -q --jobs $(JOBS) -m "not slow" $(QUICK) $(ARGS)

drills: $(VENV)/.dev ## Run the long drills at full size: a hundred agents, two thousand steps, many kills
	@CHAOS_AGENTS=100 LONG_RUN_STEPS=2000 CRASHES=30 HISTORIES=300 EXAMPLES=1000 CLOCK_THREADS=4 HITS=4 MCP_KILLS=100 UNDO_SEQUENCES=200 $(BIN)/python -m pytest --jobs $(JOBS) \
	  --timeout 3600 $(DRILLS) $(ARGS)

test-latest: $(VENV)/.uv ## Run the tests on the newest releases that can be installed, then on the lowest that are allowed
	@sh requirements/resolve.sh $(UV) $(BIN)/python highest .venv-highest
	@.venv-highest/bin/python -m pytest -q --jobs $(JOBS) --ignore tests/architecture --ignore tests/third_party tests $(ARGS)
	@sh requirements/resolve.sh $(UV) $(BIN)/python lowest-direct .venv-lowest
	@.venv-lowest/bin/python -m pytest -q --jobs $(JOBS) --ignore tests/architecture --ignore tests/third_party tests $(ARGS)

third-party: $(THIRD_PARTY)/.ready ## Run packages of others, which build on this one, in an environment of their own
	@$(THIRD_PARTY)/bin/python -m pytest -q --basetemp=$(THIRD_PARTY)/tmp tests/third_party $(ARGS)

format: $(VENV)/.dev ## Format the code and put imports in order
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

lint: $(VENV)/.dev ## Lint
	@$(BIN)/ruff check .

types: $(VENV)/.dev ## Check the types
	@$(PYRIGHT)
	@$(BIN)/mypy typing_tests

layers: $(VENV)/.dev ## Check who imports whom
	@$(BIN)/lint-imports

docs: $(VENV)/.dev ## Rewrite the generated tables, then run every example in the documents
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/pictures.py
	@$(BIN)/python docs/run_picture.py
	@$(BIN)/python docs/conversation_pictures.py
	@$(BIN)/python docs/server_picture.py
	@$(BIN)/python -m pytest -q tests/docs $(ARGS)

docs-check: $(VENV)/.dev ## Say which generated tables are out of date
	@$(BIN)/python docs/generate.py --check
	@$(BIN)/python docs/pictures.py --check

site: $(DOCS)/.ready ## Build the documents as a website in build/site
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict
	@echo "Read it: $(BIN)/python -m http.server -d build/site"

coverage: $(VENV)/.dev ## Run the tests and show what they do not reach
	@$(BIN)/python -m pytest --jobs $(JOBS) --cov --cov-report=term-missing:skip-covered $(ARGS)

bench: $(VENV)/.dev ## Measure creation, step cost and search, beside the alternatives
	@$(BIN)/python -m benchmarks $(ARGS)

# make outcome MODEL=openai:gpt-5.4-mini TASKS=60 SEEDS=2; a second call goes on where the first one ended.
outcome: $(VENV)/.dev ## Measure how much work one model gets done in several harnesses: MODEL= TASKS= SEEDS=
	@$(BIN)/python -m benchmarks.outcome $(if $(MODEL),--model $(MODEL)) $(if $(TASKS),--tasks $(TASKS)) $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

eval-local: $(VENV)/.dev ## Measure the local model on small tasks with strict checks
	@$(BIN)/python -m benchmarks.local_eval $(ARGS)

clients: $(VENV)/.dev ## Write which clients and public chat pages work here, and on langgraph dev
	@$(BIN)/python -m tests.server.clients

lock: $(VENV)/.uv ## Resolve the dependencies anew into requirements/*.lock
	@sh requirements/lock.sh $(UV) $(ARGS)

release: $(VENV)/.uv $(VENV)/.dev ## Build, check and tag the version of this checkout; nothing is published
	@bash .ci/release $(UV) $(BIN)/python

clean: ## Remove what the other targets made
	rm -rf .venv .venv-* build dist .coverage htmlcov .hypothesis .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@for python in $(PYTHONS); do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' $(if $(NAMED),,2>/dev/null); then \
	    echo "Setting up $(VENV) with $$($$python --version), once"; \
	    $$python -m venv $(VENV) && exit 0; \
	    rm -f $(VENV)/pyvenv.cfg; exit 1; \
	  fi; \
	done; \
	echo "deepagents needs Python 3.11 or newer, and none starts as $(PYTHONS). Install one, or name its path: make PYTHON=/path/to/python3.13" >&2; exit 1

$(VENV)/.run: $(VENV)/pyvenv.cfg requirements/run.lock pyproject.toml
	@$(PIP) $(LOCKED) requirements/run.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -m pip --disable-pip-version-check check
	@touch $@

$(VENV)/.serve: $(VENV)/.run requirements/serve.lock
	@$(PIP) $(LOCKED) requirements/serve.lock
	@touch $@

# By uv, which takes a quarter of pip's time. Nothing is compiled here: the tests import half of it.
$(VENV)/.dev: $(VENV)/.uv requirements/dev.lock pyproject.toml
	@$(UV_INSTALL) $(BIN)/python --require-hashes -r requirements/dev.lock
	@$(UV_INSTALL) $(BIN)/python --no-build-isolation -e .
	@$(UV) pip check --quiet --python $(BIN)/python
	@touch $@

# What it says holds as long as the locks stay as they are.
$(VENV)/.fresh: requirements/dev.lock requirements/docs.lock requirements/fresh.sh | $(VENV)/pyvenv.cfg
	@$(MAKE) --no-print-directory fresh
	@touch $@

$(VENV)/.uv: $(VENV)/pyvenv.cfg
	@$(PIP) install --target $(VENV)/uv uv==$(UV_VERSION)
	@touch $@

$(DOCS)/.ready: $(VENV)/.uv requirements/docs.lock
	@$(UV) venv --quiet --clear --python $(BIN)/python $(DOCS)
	@$(UV_INSTALL) $(DOCS)/bin/python --require-hashes -r requirements/docs.lock
	@touch $@

# Nothing is resolved here: what these packages call deepagents is this checkout, never one from a registry.
$(THIRD_PARTY)/.ready: $(VENV)/.uv requirements/third-party.lock requirements/scanned.lock pyproject.toml src/deepagents/_version.py
	@echo "Setting up $(THIRD_PARTY), once"
	@$(UV) venv --quiet --clear --python $(BIN)/python $(THIRD_PARTY)
	@$(UV_INSTALL) $(THIRD_PARTY)/bin/python --only-binary :all: --require-hashes -r requirements/third-party.lock
	@$(UV_INSTALL) $(THIRD_PARTY)/bin/python --target $(THIRD_PARTY)/scanned --python-version 3.13 --only-binary :all: --require-hashes -r requirements/scanned.lock
	@$(UV_INSTALL) $(THIRD_PARTY)/bin/python --no-build-isolation -e .
	@$(UV) pip check --quiet --python $(THIRD_PARTY)/bin/python
	@touch $@
