# Every target makes its own .venv; python3 (3.11 or newer) and make are all it takes.
# make PYTHON=python3.12 ... makes it with another interpreter.

BIN := .venv/bin
DEV := .venv/.stamp-dev
BENCH := .venv/.stamp-bench

PYTHON ?= python3
TAPELESS_FUZZ_EXAMPLES ?= 5000
export PYTHON
# Tests start hundreds of processes, each of which would read all sources again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: demo test test-each test-all check fuzz soak bench-primal bench-grad bench-memory bench-calls bench-reversible bench-coarsening bench-breadth format clean help

demo: $(DEV) ## show what Tapeless does, in a minute
	@$(BIN)/python -m tapeless.tools.demo

test: $(DEV) ## run the tests, but none that takes long
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not thorough and not exhaustive"

test-each: $(DEV) ## run each test, of exhaustive ones a sample
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not exhaustive"

test-all: $(DEV) ## run all tests but the long fuzzing: what CI runs
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

check: $(DEV) ## format, lint, types and layers, without changing a file
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy src
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/check-imports

fuzz: $(DEV) ## run generated programs; TAPELESS_FUZZ_EXAMPLES says how many a property
	@TAPELESS_FUZZ_EXAMPLES=$(TAPELESS_FUZZ_EXAMPLES) $(BIN)/python -m pytest tests/fuzz -m slow

soak: $(DEV) ## look for leaks and hangs for some minutes; SOAK=0.1 for a tenth of it
	@$(BIN)/python -m tests.trust.soak

bench-primal: $(BENCH) ## time compiled functions against Numba and NumPy
	@$(BIN)/python -m benchmarks.primal

bench-grad: $(DEV) ## time gradients against C, and against JAX, PyTorch and autograd where installed
	@$(BIN)/python -m benchmarks.grad

bench-memory: $(DEV) ## memory and time of gradients by each plan, predicted and measured
	@$(BIN)/python -m benchmarks.memory

bench-calls: $(BENCH) ## the cost of a call, beside Numba and plain Python
	@$(BIN)/python -m benchmarks.calls

bench-reversible: $(DEV) ## reversible functions beside plain ones: forward, inverse, gradient, memory
	@$(BIN)/python -m benchmarks.reversible

bench-coarsening: $(DEV) ## time gradients with closed forms and without, beside C, and JAX, PyTorch and CasADi where installed
	@$(BIN)/python -m benchmarks.coarsening

bench-breadth: $(DEV) ## time functions of NumPy and SciPy that compile beside the libraries' own, and their gradients
	@$(BIN)/python -m benchmarks.breadth

format: $(DEV) ## format the code and mend what the linter can mend
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

clean: ## remove caches and build results; .venv stays
	@rm -rf build dist .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS='	' read -r target text; do \
		printf '  make %-16s %s\n' "$$target" "$$text"; done

$(DEV): pyproject.toml scripts/setup-venv
	@scripts/setup-venv dev

$(BENCH): $(DEV)
	@scripts/setup-venv bench
