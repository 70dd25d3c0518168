# Every target sets up what it needs in .venv, with the versions pinned in requirements.lock.
# .venv/demo: the package, its command line and plots. .venv/ready: that and all packages for development.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(8, max(2, os.cpu_count() or 2)))')
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/pytest --numprocesses $(WORKERS) --dist loadgroup

# What `make paper` runs. Problems that take seconds per evaluation (svm53, svm388, lasso-dna, ...) are left to `bounce paper run`.
PAPER = 2 4 7 8 9 10 11 14 15 16 18 19 20 21
PAPER_PROBLEMS = labs50,pest25,ackley53,contamination25,maxsat60,branin500,hartmann500

.PHONY: demo paper check test coverage static docs lock clean

demo: .venv/demo
	$(BIN)/bounce demo

# A small part of the experiments of the paper, with their figures and claims.
paper: .venv/demo
	$(BIN)/bounce paper run $(PAPER) --problems $(PAPER_PROBLEMS) --repetitions 2 --evaluations 30 --jobs 2
	$(BIN)/bounce paper plot $(PAPER)
	$(BIN)/bounce paper check $(PAPER)

# All checks except the slow tests.
check: static
	$(PYTEST) --quiet -m 'not slow'

# All checks.
test: static
	$(PYTEST)

# All tests again with a count of the lines they reach, which takes half as long again: at least 95 % must be reached.
coverage: .venv/ready
	$(PYTEST) --cov --cov-report=term

static: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.venv/demo: pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Bounce needs Python 3.11 or later")'
	$(PYTHON) -m venv .venv
	$(PIP) --no-compile --editable '.[plot]'
	touch $@

.venv/ready: .venv/demo
	$(PIP) --editable '.[dev]'
	-$(BIN)/python -m compileall -qq -j 0 .venv/lib  # tests start many processes; the demo's packages have no bytecode yet
	touch $@

# Pin the newest versions that work together; run the tests before you commit the result.
lock:
	rm -rf .venv/lock && $(PYTHON) -m venv .venv/lock
	.venv/lock/bin/python -m pip install --quiet --editable '.[dev]'
	.venv/lock/bin/python -m pip freeze --exclude-editable > requirements.lock

clean:
	rm -rf .venv site .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
