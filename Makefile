# Everything starts here: `make demo` shows it, `make test` proves it. Both set up what they need.

VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.ready
SCALE  ?= 1
# Tests wait more than they compute: on a small machine, four at a time.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 4); echo $$((n < 4 ? 4 : n)))

# The first Python that is new enough. Name another one with: make setup PYTHON=/path/to/python3
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && exit; done; echo python3)

export PIP_USER = 0
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test browser screenshots check bench torture mutants docs clean venv

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the turn command and all tools; again only when they changed
	@$(PY) -m compileall -q yourturn  # the command starts twice as fast, also where Python may not write bytecode itself

demo: setup ## open the inbox with a lively project: agents ask, you answer, they go on
	@trap : INT; $(PY) -m yourturn.demo || [ $$? = 130 ]  # Ctrl-C is how it ends, not an error

test: setup browser ## run all tests, on SQLite and PostgreSQL
	@PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -n $(WORKERS) --dist worksteal -p no:cacheprovider  # one compiles, all read

browser: ## a Chromium for the tests of pages; root gets one from the system's packages where none is there
	@for b in chromium chromium-browser google-chrome; do command -v $$b >/dev/null && exit 0; done; { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || { \
			echo "The tests of pages need a Chromium: install chromium, then run make again." >&2; exit 1; }; \
		echo "Installing a Chromium for the tests of pages …"; \
		{ apt-get install -y chromium || { apt-get update && apt-get install -y chromium; }; } >/dev/null || { \
			echo "No Chromium could be installed: install chromium yourself, then run make again." >&2; exit 1; }; }
	@command -v chromium-headless-shell >/dev/null || [ "$$(id -u)" != 0 ] || \
		timeout 60 apt-get install -y chromium-headless-shell >/dev/null 2>&1 || true  # the same pages, for a third less

screenshots: setup browser ## write pictures of every page to screenshots/
	@$(PY) -m tests.web.screenshots
	@$(PY) -m tests.web.workshots

check: setup ## lint, types, and docs that say what the tables say
	@bad=0; \
	$(PY) -m ruff check --output-format concise . || bad=1; \
	$(PY) -m mypy || bad=1; \
	$(PY) -m tools.generate_docs --check || bad=1; \
	exit $$bad

bench: setup $(VENV)/.bench ## measure the desk against bare databases and a peer; writes docs/benchmarks.md (BENCH=a for one part)
	@$(PY) -m bench $(BENCH)

torture: setup ## the long fault tests: kills, crowds, broken surroundings (SCALE=0.1 for a taste)
	@$(PY) -m tests.torture --scale $(SCALE)

mutants: setup ## take one guard away at a time; some test must notice each
	@$(PY) -m tests.mutants

docs: setup ## print docs/rules.md from the tables
	@$(PY) -m tools.generate_docs

clean: ## remove .venv, caches and what builds leave
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- setting up -----------------------------------------------------------------------------------------------------

$(STAMP): pyproject.toml constraints.txt
	@$(MAKE) --no-print-directory venv
	@printf 'Installing Yourturn and its tools into $(VENV), one to two minutes '
	@$(PY) -m pip install -qq -c constraints.txt -e '.[dev]' & pip=$$!; \
		while kill -0 $$pip 2>/dev/null; do printf .; sleep 1; done; echo; wait $$pip
	@touch $@
	@echo "Ready: $(VENV)/bin/turn"

$(VENV)/.bench: pyproject.toml constraints.txt | setup
	@echo "Installing what the bench compares with …"
	@$(PY) -m pip install -qq -c constraints.txt -e '.[bench]'
	@touch $@

# A fresh .venv, unless a good one is there. Where Python comes without ensurepip (Debian and its children), the system's
# pip fills it; failing that, root may install python3-venv.
venv:
	@$(PY) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
			echo "Yourturn needs Python 3.11 or newer, and $(PYTHON) is: $$($(PYTHON) --version 2>&1)" >&2; \
			echo "Install one, or name it: make setup PYTHON=/path/to/python3.12" >&2; exit 1; }; \
		rm -rf $(VENV); \
		$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 && exit 0; \
		rm -rf $(VENV); \
		$(PYTHON) -m venv --without-pip $(VENV) \
			&& $(PYTHON) -m pip --python $(PY) install -qq pip 2>/dev/null && exit 0; \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "This Python cannot make a virtual environment; installing python3-venv …"; \
			{ apt-get install -y python3-venv || { apt-get update && apt-get install -y python3-venv; }; } >/dev/null; \
			rm -rf $(VENV); $(PYTHON) -m venv $(VENV) && exit 0; \
		fi; \
		rm -rf $(VENV); \
		echo "This Python cannot make a virtual environment: install python3-venv (or virtualenv), then run make again." >&2; \
		exit 1; }
