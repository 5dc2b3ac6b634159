# Every target sets itself up: Python 3.11+ and make suffice, Java 17+ for Spark and real Kafka.
PYTHON ?= python3
SEED ?= 1
BIN := .venv/bin

# Container images often forbid bytecode; then each of the tests' thousand Python processes compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

ALONE := java or kafka or spark or browser or package
BESIDE := soak or rest
FAST := not ($(ALONE)) and not slow and not ($(BESIDE))

IN_FILES = $(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=10

PURE := model flow audit placement reassign acks streams plan consumers

.PHONY: env demo test rest coverage check check-tests check-types check-imports quick bench sim soak mutants lock clean
.DEFAULT_GOAL := check

env: .venv/.complete

.venv/.complete: requirements.lock pyproject.toml tools/env.sh
	@PYTHON="$(PYTHON)" sh tools/env.sh

demo: env
	@$(BIN)/rackspan demo

# What runs in Python alone; then, three files at a time since half of its time is waiting, what starts Java, Kafka, Spark, a browser or
# a bare environment. Side by side they take longer. The longest files come first (tests/conftest.py).
test: env
	RACKSPAN_SIM_SEEDS=5 $(BIN)/pytest -q -n auto --dist worksteal -m "not ($(ALONE)) and not ($(BESIDE))"
	$(BIN)/python -m tests.spark_classes
	$(IN_FILES) -m "($(ALONE)) and not ($(BESIDE))"

# What make test leaves out for its time: CI runs both.
rest: env
	$(BIN)/python -m tests.spark_classes
	$(IN_FILES) -m "rest and not soak"

# Both, counting lines, which takes longer.
coverage: env
	$(BIN)/pytest -q -n auto --dist worksteal -m "not ($(ALONE)) and not soak" --cov --cov-report=
	$(BIN)/pytest -m "($(ALONE)) and not soak" --cov --cov-append --cov-report=term:skip-covered

# What every commit passes, types and imports beside the tests: fewer examples for each property than in make test, and no test of
# more than a fifth of a second, unless it is what reads every file.
check: env
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory -j3 -Otarget check-tests check-types check-imports

check-types:
	$(BIN)/mypy

check-imports:
	$(BIN)/lint-imports --no-cache

check-tests:
	RACKSPAN_DEPTH=check $(BIN)/pytest -q -n auto --dist worksteal -m "$(FAST)"

# The packages without sockets and clocks, before each commit to them.
quick: env
	$(BIN)/ruff check .
	RACKSPAN_DEPTH=check $(BIN)/pytest -q -n auto --dist worksteal -m "$(FAST)" $(PURE:%=tests/%) tests/test_tidy.py

bench: env
	$(BIN)/python -m benchmarks

bench-%: env
	$(BIN)/python -m benchmarks $*

# One seed of rack disasters, judged: make sim SEED=7 WORLD=lossy.
sim: env
	@$(BIN)/python -m tests.simulation $(SEED) $(if $(WORLD),--world $(WORLD)) $(if $(COUNT),--count $(COUNT)) $(if $(TRACE),--trace $(TRACE))

# All of make test with its seeds, then the large counts with new ones, and the releases of real Kafka before the newest. Some of both
# start the oldest that is tested too (tests/kafka_versions.py).
soak: test
	RACKSPAN_SOAK=1 $(BIN)/pytest -m "soak or not package"
	RACKSPAN_KAFKA=4.1.0 $(BIN)/pytest -m "kafka and not soak"
	RACKSPAN_KAFKA=4.3.1 $(BIN)/pytest -m "kafka and not soak"
	$(BIN)/python -m tools.mutation
	$(BIN)/python -m tools.mutation.kips

# Small faults planted in every package, or in one: which ones the package's tests report.
# make mutants PACKAGE=flow COUNT=50 SEED=7; python -m tools.mutation --help for the rest.
mutants: env
	$(BIN)/python -m tools.mutation $(PACKAGE) --seed $(SEED) $(if $(COUNT),--sample $(COUNT))

# Rewrites requirements.lock: one resolution for every extra and every platform, hashes, no index addresses.
lock:
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet -o requirements.lock

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
