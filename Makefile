# Every target sets up what it needs; `make help` lists them.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: help setup demo test conformance bench soak lint clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "podium needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable . --group dev
	@touch $@

setup: $(STAMP) ## create .venv with podium and its development tools

demo: $(STAMP) ## see the embedded control plane at work, from start to stop
	$(BIN)/python examples/demo.py

test: $(STAMP) ## every test that needs only Python
	$(BIN)/pytest -n 2

conformance: $(STAMP) ## the same behaviour as the originals (builds them; needs Go)
	PATH="$(CURDIR)/$(BIN):$$PATH" conformance/run

bench: $(STAMP) ## side-by-side figures against the originals (needs Go)
	PATH="$(CURDIR)/$(BIN):$$PATH" bench/run

soak: $(STAMP) ## a random cluster for five minutes, with every invariant checked
	$(BIN)/python tests/soak/random_cluster.py --minutes 5

lint: $(STAMP) ## style, types and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/behaviour_matrix.py --check

clean: ## remove the virtual environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
