PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash

.PHONY: run test slow check profile traces bench clean

run: .venv/.installed  ## Place the trace in the repo with every strategy.
	$(BIN)/placer run traces/arrivals-500.csv

test: .venv/.installed-dev check  ## Lint, types, import rules, then the tests on all cores.
	$(BIN)/pytest -n auto

slow: .venv/.installed-dev  ## The studies that take minutes: 200 kills, 10,000 random optima.
	$(BIN)/pytest -m slow

check: .venv/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

profile: .venv/.installed  ## Record the profile of the simulated BlueField-2 again; the same seed gives the same bytes.
	rm -rf build/bluefield-2-simulated
	$(BIN)/placer profile --testbed simulated --out build/bluefield-2-simulated --seed 0
	rm -rf traces/bluefield-2-simulated
	cp -r build/bluefield-2-simulated traces/bluefield-2-simulated

traces: .venv/.installed  ## Write the traces in the repo again.
	$(BIN)/placer generate --count 500 --seed 1 --out traces/arrivals-500.csv
	$(BIN)/placer generate --count 500 --traffic mixed --seed 2 --out traces/arrivals-mixed.csv
	$(BIN)/placer generate --count 500 --departures 1500 --seed 3 --out traces/arrivals-departures.csv

clean:
	rm -rf .venv build

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("placer needs Python 3.11 or later") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.installed-dev: .venv/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

bench: .venv/.installed  ## Speed beside a peer in the same run.
	$(BIN)/python -m benches
