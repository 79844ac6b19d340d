# Tasks for this checkout; `make` lists them. Everything is installed in .venv and nowhere else.
# Works with GNU make 3.81 (macOS) and later; needs only Python 3.11 or newer with venv.

.PHONY: help demo test test-slow test-core test-newest test-lowest lint docs site format lock upgrade audit bench changelog clean

# Variables of the caller's shell that must not affect the environment built here.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS PYTHONSAFEPATH VIRTUAL_ENV CONDA_PREFIX
unexport PYTHONDONTWRITEBYTECODE  # tests start Python thousands of times, and would compile everything each time
unexport PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIRE_VIRTUALENV PIP_NO_DEPS PIP_REQUIRE_HASHES
unexport PYTEST_ADDOPTS RUFF_CONFIG MYPYPATH

BIN = .venv/bin
# More processes than cores, because many tests wait for a process or a clock, slow ones the most. The shell evaluates
# this: make would do so before the first line of a recipe has set up .venv. One process runs all tests of a file, so
# that what they share is made once; if it dies, that ends the run, which else may never end (pytest-xdist issue 1378).
# Files start in the order of tests/conftest.py, not by their number of tests.
SPREAD = --dist loadscope --no-loadscope-reorder --max-worker-restart 0
WORKERS = $$($(BIN)/python -c "import os; print(min(4, 2 * (os.cpu_count() or 1)))")
SLOW_WORKERS = $$($(BIN)/python -c "import os; print(min(6, 3 * (os.cpu_count() or 1)))")
# Programs, not modules. _results.py and study_copies.py measure nothing; the last two install other tools first.
BENCHMARKS = $(filter-out $(addprefix benchmarks/,_results.py study_copies.py peers.py mcp_conformance.py), \
  $(shell grep -l '^if __name__' benchmarks/*.py))
COMPILE = $(BIN)/uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-index-url --constraint requirements/constraints.in $(UPGRADE) pyproject.toml --group build

# mypy runs beside the tests, which wait often enough. What it finds is printed last, and fails the whole.
with_lint = $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports --no-logo || exit; \
  mkdir -p build; $(BIN)/mypy >build/mypy.txt 2>&1 & mypy=$$!; trap "kill $$mypy" INT TERM; \
  code=0; $(1) || code=$$?; wait $$mypy || { cat build/mypy.txt; code=1; }; exit $$code

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo:  ## Set up, then run the example: an agent under three conditions, offline, in under a minute
	@sh scripts/setup core
	$(BIN)/karat run examples/support-kb/experiment.yaml

test:  ## Set up, then linters and the quick tests (ARGS="-k name" passes options to pytest)
	@sh scripts/setup dev
	@$(call with_lint,$(BIN)/pytest -n $(WORKERS) $(SPREAD) -m "not slow" $(ARGS))

test-slow:  ## Run the tests that `make test` leaves out, and the property tests again with more examples
	@sh scripts/setup dev
	$(BIN)/pytest -n $(SLOW_WORKERS) $(SPREAD) -m "slow or hypothesis" --hypothesis-profile deep $(ARGS)

test-core:  ## Run the core's own quick tests where none of the packages beside it is
	@sh scripts/setup dev
	$(BIN)/python scripts/core.py -n $(WORKERS) $(SPREAD) $(ARGS)

test-newest:  ## Run the quick tests with the newest version of every dependency
	@sh scripts/setup dev
	$(BIN)/python scripts/versions.py newest -n $(WORKERS) $(SPREAD) $(ARGS)

test-lowest:  ## Run the quick tests with the lowest version that pyproject.toml declares of every dependency
	@sh scripts/setup dev
	$(BIN)/python scripts/versions.py lowest -n $(WORKERS) $(SPREAD) $(ARGS)

lint:  ## Run ruff, mypy and the import contracts
	@sh scripts/setup dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format:  ## Format the code with ruff, and apply its automatic fixes
	@sh scripts/setup dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs:  ## Generate docs/reference/ from the code, and run the tutorial to update its outputs
	@sh scripts/setup dev
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/outputs.py

site:  ## Build the documentation as a site into build/site/
	@sh scripts/setup dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lock:  ## Update requirements/*.txt to match pyproject.toml, keeping existing pins
	@sh scripts/setup dev
	$(COMPILE) --output-file requirements/core.txt
	$(COMPILE) --extra all --output-file requirements/all.txt
	$(COMPILE) --extra all --extra dev --output-file requirements/dev.txt

upgrade:  ## Update requirements/*.txt to the newest version of everything
	@$(MAKE) --no-print-directory lock UPGRADE=--upgrade

audit:  ## Look for known vulnerabilities in the pinned packages (asks pip-audit's service)
	@sh scripts/setup dev
	@sh scripts/audit

bench:  ## Measure speed, memory and crash safety (hours), and write benchmarks/RESULTS.md
	@sh scripts/setup dev
	@missed=; for name in $(notdir $(basename $(BENCHMARKS))); do echo "benchmarks/$$name.py"; \
	  $(BIN)/python "benchmarks/$$name.py" --json "benchmarks/measured/$$name.json" || missed="$$missed $$name"; \
	done; if [ -n "$$missed" ]; then echo "missed a limit or failed:$$missed" >&2; exit 1; fi

changelog:  ## Gather changes/*.md into CHANGELOG.md: make changelog VERSION=1.2.3
	@sh scripts/setup dev
	$(BIN)/python scripts/changelog.py "$(VERSION)"

clean:  ## Remove .venv and all caches, but no results
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find src tests docs scripts benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
