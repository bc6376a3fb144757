# Everything runs from the environment in .venv, which the first target that needs it makes.
# Needs Python 3.11 or newer, make and git; no activated environment.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

RUNTIME := train,experiments,tune,serve,client,hub,spark,postgres,milvus
NEED_MORE_TOOLS := tests/browser tests/server/test_openapi.py  # they are slow tests anyway
TEST_TOOLS := hypothesis polars psutil pytest pytest-xdist pytrec-eval-terrier

# Two workers for each processor, since tests of servers mostly wait, with one thread each. tests/conftest.py says which
# come first and which stay together.
WORKERS := $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
PYTEST := OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# The first interpreter that really runs (a version manager may leave names behind that do not).
# Only asked for when the environment is made; override with: make PYTHON=/path/to/python
PYTHON ?= $(shell for name in python3.11 python3 python3.12 python3.13; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)

.PHONY: help env demo test check quick long docs dist lowest matrix format clean

help:
	@echo "make demo    train on a small corpus and search it"
	@echo "make test    run all checks, and all tests except the long ones"
	@echo "make check   run linter, type checker and import contracts"
	@echo "make quick   run the fast tests"
	@echo "make long    run the long tests: 1,000 kills, 2,000 damaged stores, 10,000 random steps, Milvus killed in 100,000 documents"
	@echo "make docs    build the documentation in site/; warnings are errors"
	@echo "make dist    build the packages in dist/ and check them"
	@echo "make lowest  run the fast tests with the lowest versions that pyproject.toml allows"
	@echo "make matrix  run the fast tests with every supported Python that is installed"
	@echo "make format  format the sources"
	@echo "make clean   remove the environment and caches"

env: $(READY)

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "snuh needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$(RUNTIME),docs,dev]"
	@# Its upper bound of typer is below our version, which it runs with.
	$(BIN)/python -m pip install --quiet --no-deps openapi-python-client==0.29.1
	@touch $@

demo: $(READY)
	$(BIN)/snuh demo

test: check docs
	$(PYTEST) -m "not long"

# 1,000 kills, 2,000 damaged stores, 10,000 random steps, Milvus killed while 100,000 documents are added, Spark workers killed or
# failing, every view of the page; "make test" has shorter versions of most.
long: $(READY)
	$(PYTEST) -m long

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: $(READY)
	$(PYTEST) -m "not slow and not long"

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src $(BIN)/mkdocs build --strict --quiet

# An isolated build: nothing of the environment or of files that git does not know gets in.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# Only what pyproject.toml names directly has its lowest version; test tools have those of constraints.txt.
lowest: $(READY)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-lowest
	$(BIN)/uv pip install --quiet --python .venv-lowest --resolution lowest-direct --editable ".[$(RUNTIME)]"
	$(BIN)/uv pip install --quiet --python .venv-lowest --constraint constraints.txt $(TEST_TOOLS)
	$(subst $(BIN),.venv-lowest/bin,$(PYTEST)) -m "not slow and not long" $(NEED_MORE_TOOLS:%=--ignore %)

# Interpreters on the path that really run, or of pyenv.
matrix:
	@for version in 3.11 3.12 3.13; do \
		found=; \
		for python in python$$version $$HOME/.pyenv/versions/$$version.*/bin/python; do \
			$$python -c "" 2>/dev/null && found=$$python && break; \
		done; \
		if [ -z "$$found" ]; then echo "Python $$version is not installed"; continue; fi; \
		echo "Python $$version: $$found"; \
		$(MAKE) quick VENV=.venv-$$version PYTHON=$$found || exit 1; \
	done

format: $(READY)
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-* build dist site src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
