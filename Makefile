# Needs Python 3.11 or newer and make. The first run builds .venv, later runs reuse it.
#   make demo PYTHON=python3.13     another interpreter (only read when .venv is built)
#   make test ARGS="-k recall -x"   arguments for pytest

VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
# Unpacked modules are compiled when they are first imported: half the time of the installation.
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile
DISTRIBUTIONS := pyproject.toml integrations/langchain/pyproject.toml integrations/llama-index/pyproject.toml
SOURCES := src tests integrations cookbook .ci
TYPED := src tests integrations/langchain/langchain_memoranda integrations/llama-index/llama_index
ARGS ?=
LLAMA_INDEX_SRC ?=
LLAMA_INDEX_TESTS = $(BIN)/python integrations/llama-index/upstream/run.py $(LLAMA_INDEX_SRC)

.DEFAULT_GOAL := help
.PHONY: help demo test test-upstream test-upstream-llama-index bench-large bench-peers lint format clean

help:
	@echo "make demo    a story in the terminal: remembered, folded, recalled (offline, SQLite)"
	@echo "make test    run every test of the three distributions, on SQLite and on Postgres"
	@echo "make test-upstream  run LangChain's own tests, downloaded now, against our classes, and LlamaIndex's from a"
	@echo "             checkout of its repository that LLAMA_INDEX_SRC=DIR names; these alone: make test-upstream-llama-index"
	@echo "make bench-large    a million rows on Postgres, 200,000 on SQLite: an hour or more; small: ARGS=\"--rows 20000\""
	@echo "make bench-peers    other memories and stores beside this one, in an environment of their own; with"
	@echo "             ARGS=\"--data DIR\" their quality on public sets too"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff rewrite the layout and the order of imports"
	@echo "make clean   remove .venv, builds and caches"

demo: $(VENV)/.demo
	@$(BIN)/memoranda demo $(ARGS)

# Two workers and a hundred subprocesses load the same modules: compiled ones in a third of the time.
test: $(VENV)/.test
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-upstream: $(VENV)/.test
	$(BIN)/python integrations/langchain/upstream/run.py $(SUITES)
	$(if $(LLAMA_INDEX_SRC),$(LLAMA_INDEX_TESTS),@echo "LlamaIndex's own tests were not run: LLAMA_INDEX_SRC=DIR names a checkout")

test-upstream-llama-index: $(VENV)/.test
	$(LLAMA_INDEX_TESTS)

bench-large: $(VENV)/.test
	$(BIN)/python tests/benchmarks/large.py $(ARGS)

bench-peers: $(PEERS)/.bench
	$(PEERS)/bin/python tests/benchmarks/peers.py $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(TYPED)

format: $(VENV)/.test
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

clean:
	rm -rf $(VENV) $(PEERS) build dist integrations/*/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "installing the engine with the demo's extras into $(VENV)"
	@$(PIP) -e ".[cli,local]"
	@touch $@

$(VENV)/.test: $(DISTRIBUTIONS) | $(BIN)/python
	@echo "installing the three distributions and the test requirements into $(VENV)"
	@$(PIP) -e ".[test]" -e "integrations/langchain[test]" -e integrations/llama-index
	@touch $(VENV)/.demo $@

# Of its own, for the peers ask for older releases of what we use than our tests run with.
$(PEERS)/.bench: $(DISTRIBUTIONS) | $(BIN)/python
	@echo "installing the three distributions and the peers into $(PEERS)"
	@$(BIN)/python -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check -e ".[bench]" -e integrations/langchain -e integrations/llama-index
	@touch $@

$(BIN)/python:
	@for python in $(PYTHON) $(if $(PYTHON),,python3 python3.14 python3.13 python3.12 python3.11); do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "Memoranda needs Python 3.11 or newer$(if $(PYTHON),; $(PYTHON) is not,: none was found. Name one with PYTHON=...)" >&2; exit 1; \
	fi; \
	echo "building $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "This Python cannot build environments: install its venv module (Debian: python3-venv)." >&2; exit 1; }
