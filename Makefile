# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RAY := $(VENV)/.ray

.PHONY: demo test test-slow browser-test lint bench figures reliability fuzz clean

demo: $(STAMP)
	$(BIN)/gst demo

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not slow" -n auto --dist loadfile --durations=15

test-slow: $(STAMP)
	$(BIN)/python -m pytest -q -m slow

# the report in headless Chromium, from the system's packages where there is none yet
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
browser-test: $(STAMP)
	command -v chromedriver >/dev/null || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -qy chromium chromium-driver; }
	GST_NEED_BROWSER=1 $(BIN)/python -m pytest -q tests/lab/report/test_browser.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/epoch.py
	$(BIN)/python benchmarks/features.py

# kills, random calls, damage, hostile files, threads and fuzzing at full length, in about 15 minutes; JSON on stdout
TRIALS := PYTHONPATH=tests:tests/methods OMP_NUM_THREADS=1 $(BIN)/python -m reliability
reliability: $(RAY)
	@$(TRIALS)

fuzz: $(STAMP)
	@$(TRIALS) fuzz --examples 1000000000 --seconds $(or $(SECONDS),300)

figures: $(STAMP)
	$(BIN)/python -m gst.lab.reproduction

# torch first and by itself: its pinned build must not be replaced by what another package would pull in
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev]"
	$(BIN)/gst warmup
	touch $@

# an extra, for the kills of its workers
$(RAY): $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[ray]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
