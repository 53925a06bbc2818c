# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RAY := $(VENV)/.ray

SITE := $(VENV)/.site

.PHONY: demo test test-slow browser-test lint bench figures reliability serving fuzz clean \
	package docs tutorials coverage trackers release-check

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

# an endpoint under load for a minute, killed half way, on a run of Deploy that is made first; JSON on stdout
serving: $(STAMP)
	test -e $(VENV)/served/run.json || OMP_NUM_THREADS=1 $(BIN)/gst run --dataset digits --sparsity 0.8 --out $(VENV)/served --quiet >&2
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/serving.py updates $(VENV)/served
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/serving.py load $(VENV)/served --seconds $(or $(SECONDS),60)

fuzz: $(STAMP)
	@$(TRIALS) fuzz --examples 1000000000 --seconds $(or $(SECONDS),300)

figures: $(STAMP)
	$(BIN)/python -m gst.lab.reproduction

# wheel and sdist, built twice, installed with the newest and the oldest versions, and tried: about ten minutes
package: $(SITE)
	$(BIN)/python tools/package.py

# the site in build/site; a warning or a dead link is an error
docs: $(SITE)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/check_site.py build/site

# executes the notebooks again; `git diff tutorials` shows what changed
tutorials: $(SITE)
	$(BIN)/python tools/tutorials.py

# lines of src/gst that the quick tests run; make coverage TESTS=tests/graph for some of them
coverage: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not slow" -n auto --dist loadfile -p no:cacheprovider \
		--cov=gst --cov-report=term:skip-covered --cov-report=json:build/coverage.json $(TESTS)

# against the real packages, offline
trackers: $(SITE)
	$(BIN)/python -m pytest -q tests/train/test_trackers.py tests/test_examples.py

# all that a release needs, with a summary at the end
release-check: $(SITE)
	$(BIN)/python tools/release_check.py

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

# extras for the site, the notebooks, the trackers and the package
$(SITE): $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[docs,tutorials,trackers]" build
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
