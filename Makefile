# What can be done here; `make` lists it. Everything happens in .venv, nothing is installed anywhere else.
# Written for GNU make 3.81 (macOS) and later; needs Python 3.11 or newer with venv, nothing more.

.PHONY: help demo test test-slow lint docs site format lock upgrade bench changelog clean

# Of the caller's shell: none of it may reach the environment that is built here.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS PYTHONSAFEPATH VIRTUAL_ENV CONDA_PREFIX
unexport PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIRE_VIRTUALENV PIP_NO_DEPS PIP_REQUIRE_HASHES
unexport PYTEST_ADDOPTS RUFF_CONFIG MYPYPATH

BIN = .venv/bin
# One process more than cores: many tests wait for a process or a clock. The shell asks, not make, which would ask
# before the first line of a recipe has set up .venv.
WORKERS = $$($(BIN)/python -c "import os; print(min(4, 1 + (os.cpu_count() or 1)))")
# Modules of the benchmarks, and those that install other tools first.
NOT_RUN = $(addprefix benchmarks/,limits.py results.py peers.py)
COMPILE = $(BIN)/uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-index-url --constraint requirements/constraints.in $(UPGRADE) pyproject.toml --group build

help:  ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo:  ## Set up, then run the example: an agent under three conditions, offline, in under a minute
	@sh scripts/setup core
	$(BIN)/karat run examples/support-kb/experiment.yaml

test:  ## Set up, then linters and the quick tests (ARGS="-k name": pass something on to pytest)
	@sh scripts/setup dev
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest -n $(WORKERS) -m "not slow" $(ARGS)

test-slow:  ## All other tests, and those of properties again with many more examples
	@sh scripts/setup dev
	$(BIN)/pytest -n $(WORKERS) -m "slow or hypothesis" --hypothesis-profile deep $(ARGS)

lint:  ## ruff, mypy, import contracts
	@sh scripts/setup dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format:  ## Let ruff write the code as the linter wants to read it
	@sh scripts/setup dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs:  ## Write docs/reference/ from the code, and run the tutorial to renew its outputs
	@sh scripts/setup dev
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/outputs.py

site:  ## Build the documentation as a site into build/site/
	@sh scripts/setup dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lock:  ## Bring requirements/*.txt into line with pyproject.toml, keeping what is pinned
	@sh scripts/setup dev
	$(COMPILE) --output-file requirements/core.txt
	$(COMPILE) --extra all --output-file requirements/all.txt
	$(COMPILE) --extra all --extra dev --output-file requirements/dev.txt

upgrade:  ## The same, with the newest version of everything
	@$(MAKE) --no-print-directory lock UPGRADE=--upgrade

bench:  ## Measure speed, memory and crash safety (minutes)
	@sh scripts/setup dev
	@missed=; for benchmark in $(filter-out $(NOT_RUN),$(wildcard benchmarks/*.py)); do \
	  echo "$$benchmark"; $(BIN)/python "$$benchmark" || missed="$$missed $$benchmark"; \
	done; if [ -n "$$missed" ]; then echo "missed a limit or failed:$$missed" >&2; exit 1; fi

changelog:  ## Gather changes/*.md into CHANGELOG.md: make changelog VERSION=1.2.3
	@sh scripts/setup dev
	$(BIN)/python scripts/changelog.py "$(VERSION)"

clean:  ## Remove .venv and every cache; results stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find src tests docs scripts benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
