# Every command sets itself up: Python 3.11+ and make are enough.
PYTHON ?= python3
BIN    := .venv/bin
export PATRA_HOME   ?= .patra
export DAGSTER_HOME ?= $(abspath $(PATRA_HOME))/dagster
PORT   ?= 3000

.PHONY: demo test recorded check dev bench month sources screenshots soak lock clean

demo: .venv/ready          ## set up, harvest a local upstream through Dagster, show what happened
	@$(BIN)/patra demo

test: .venv/ready          ## every test; MySQL too when PATRA_TEST_MYSQL_URL is set or mysqld is found
	@$(BIN)/pytest -n 2 --dist loadfile

recorded: .venv/ready      ## every pack against recorded answers, and a table of it; real ones if they lie in ../shared
	@$(BIN)/pytest -q --no-header -p no:cacheprovider patra_ingest_tests/sources/test_suite.py

check: .venv/ready         ## format, lint, types, import contracts, file sizes, Dagster definitions
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/pytest -q -p no:cacheprovider patra_ingest_tests/test_architecture.py
	@mkdir -p "$(DAGSTER_HOME)"
	@$(BIN)/dagster definitions validate -w workspace.yaml --log-level warning

dev: .venv/ready           ## Dagster's UI on http://127.0.0.1:3000, or on another PORT
	@mkdir -p "$(DAGSTER_HOME)" && cp -n dagster.yaml "$(DAGSTER_HOME)/" || true
	@$(BIN)/patra init
	@$(BIN)/dagster dev -w workspace.yaml -h 127.0.0.1 -p $(PORT)

screenshots: .venv/ready   ## the pictures of docs/, taken anew by the browser test (needs chromium)
	@PATRA_SCREENSHOTS=docs PATRA_TEST_REQUIRE_BROWSER=1 $(BIN)/pytest -q patra_ingest_tests/browser

bench: .venv/ready         ## measure; prints ratios, never fails for slowness
	@$(BIN)/python -m bench

month: .venv/ready         ## plan a simulated month: HARVEST every 15 minutes, BACKFILL of a year, UPDATE
	@PATRA_SIMULATED_DAYS=30 $(BIN)/pytest --timeout 1800 -v patra_ingest_tests/pipeline/test_simulated_month.py

sources: .venv/ready       ## write docs/sources anew, from the packs
	@$(BIN)/patra sources --write docs/sources

soak: .venv/ready          ## an hour unattended: all of Dagster on, a source that lives, processes that are killed
	@PATRA_UNATTENDED_MINUTES=$${PATRA_UNATTENDED_MINUTES:-60} $(BIN)/pytest -v -s patra_ingest_tests/dagster/test_unattended.py

.venv/ready: requirements.lock pyproject.toml
	@echo "Setting up .venv (about a minute, once) …"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch .venv/ready

lock:                      ## pin every package anew (needs uv)
	@(echo "# Every package, pinned. Made by: make lock"; uv pip compile pyproject.toml --extra dev \
	  --universal --python-version 3.11 --no-header --generate-hashes --quiet) > requirements.lock

clean:                     ## forget the environment and everything under .patra
	@rm -rf .venv .patra
