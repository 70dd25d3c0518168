# All targets set up everything they need in .venv, from the versions pinned in requirements.lock.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test docs lock clean

demo: .venv/ready
	$(BIN)/bounce demo

test: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest --cov --cov-report=term

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.venv/ready: pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Bounce needs Python 3.11 or later")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev]'
	touch $@

# Pin the newest versions that work together; run the tests before you commit the result.
lock:
	rm -rf .venv/lock && $(PYTHON) -m venv .venv/lock
	.venv/lock/bin/python -m pip install --quiet --editable '.[dev]'
	.venv/lock/bin/python -m pip freeze --exclude-editable > requirements.lock

clean:
	rm -rf .venv site .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
