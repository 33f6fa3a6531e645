# `make demo` and `make test` work on a bare clone: they create .venv, install once, run.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup demo test quick lint bench docs notebooks clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "strongticket needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/strongticket demo

# One process per core, and small matrices: more threads would only wait for each other.
test quick: export OPENBLAS_NUM_THREADS = 1
test quick: export OMP_NUM_THREADS = 1
# Tests start many processes: compiled modules are kept for them, whatever the caller does.
test quick: export PYTHONDONTWRITEBYTECODE =
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
test: $(READY)
	$(PYTEST) --durations 20

# Within a minute: without the tests that are marked slow.
quick: $(READY)
	$(PYTEST) -m "not slow"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The benchmarks, then the property tests with fresh examples: `make test` tries the same ones every time.
bench: $(READY)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m pytest -n auto -m hypothesis --hypothesis-profile=fresh

# The site needs Sphinx, which the tests do not: it is installed here, once.
DOCS_READY := $(VENV)/.docs-ready
$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(DOCS_READY)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --builder html docs build/docs
	@echo open build/docs/index.html

# Run the tutorials and store what they print and draw.
notebooks: $(DOCS_READY)
	$(BIN)/python docs/run_notebooks.py

clean:
	rm -rf $(VENV) demo build docs/reference
