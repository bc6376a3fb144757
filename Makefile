# Everything runs from the environment in .venv, which the first target that needs it makes.
# Needs Python 3.11 or newer, make and git; no activated environment.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# A worker for each processor; threads of several workers would wait for each other. The order is that of tests/conftest.py.
PYTEST := OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# The first interpreter that really runs (a version manager may leave names behind that do not).
# Only asked for when the environment is made; override with: make PYTHON=/path/to/python
PYTHON ?= $(shell for name in python3.11 python3 python3.12 python3.13; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)

.PHONY: help env demo test check quick long format clean

help:
	@echo "make demo    train on a small corpus and search it"
	@echo "make test    checks and the tests"
	@echo "make check   lint, types and layers only"
	@echo "make quick   the tests that take seconds"
	@echo "make long    what is too long for every day: 1,000 kills, 2,000 damaged stores, 10,000 random steps, Milvus killed in 100,000 documents"
	@echo "make format  rewrite the sources in the project's style"
	@echo "make clean   remove the environment and caches"

env: $(READY)

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "snuh needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[train,experiments,tune,serve,client,spark,postgres,milvus,dev]"
	@touch $@

demo: $(READY)
	$(BIN)/snuh demo

test: check
	$(PYTEST) -m "not long"

# 1,000 kills, 2,000 damaged stores, 10,000 random steps, Milvus killed while 100,000 documents come in; "make test" does with fewer.
long: $(READY)
	$(PYTEST) -m long

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: $(READY)
	$(PYTEST) -m "not slow and not long"

format: $(READY)
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
