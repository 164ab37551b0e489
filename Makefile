# Needs Python 3.11 or newer, make, and access to PyPI. Nothing else.
#
#   make demo     one thread, one approval, on a real Temporal dev server
#   make test     formatting, lint, types, import contracts, then every test
#   make bench    measure beside Temporal's ADK plugin and a bare workflow: benchmarks/README.md; ARGS='history' one part
#   make worker   a worker for PROJECT, with a dev server unless TEMPORAL_ADDRESS answers; no key: SCRIPT is the model
#
# PYTHON=/path/to/python chooses the interpreter of the environment; ARGS='...' goes to pytest or to the benchmarks.
# TESTERS=1 runs the tests in one process instead of two.

UV_VERSION := 0.13.9
UV := .uv/bin/uv
BIN := .venv/bin
PROJECT ?= examples/shop_helper
SCRIPT ?= examples/shop_helper/shop.yaml
ARGS ?=
TESTERS ?= 2

# What decides which environment uv works on: only this file does.
unexport PYTHONDONTWRITEBYTECODE VIRTUAL_ENV PYTHONHOME UV_PYTHON UV_PROJECT UV_WORKING_DIRECTORY UV_SYSTEM_PYTHON
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never

.PHONY: help env demo worker bench lint format test clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

# An environment that exists keeps its Python unless PYTHON names another one.
find_python = \
	for python in $(if $(PYTHON),"$(PYTHON)",$(BIN)/python python3.13 python3.12 python3.11 python3); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then break; fi; \
		python=; \
	done; \
	if [ -z "$$python" ]; then \
		echo "No Python 3.11 or newer$(if $(PYTHON), at PYTHON=$(PYTHON)). Install one, or name it: make PYTHON=/path/to/python" >&2; \
		exit 1; \
	fi

env: .venv/synced

.uv/uv-$(UV_VERSION):
	@$(find_python); \
	rm -rf .uv; \
	echo "Fetching uv $(UV_VERSION) from PyPI with $$python"; \
	if "$$python" -m venv .uv >/dev/null 2>&1; then \
		.uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); \
	else \
		rm -rf .uv; \
		"$$python" -m pip install --quiet --disable-pip-version-check --target .uv uv==$(UV_VERSION); \
	fi || { echo "uv could not be installed by $$python: it needs venv (Debian: apt install python3-venv) or pip." >&2; exit 1; }
	@touch $@

.venv/synced: pyproject.toml uv.lock .uv/uv-$(UV_VERSION) $(if $(PYTHON),FORCE)
	@$(find_python); $(UV) sync --locked --quiet --python "$$python"
	@site=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	$(BIN)/python -m compileall -q -j0 "$$site/google/adk" "$$site/google/genai" "$$site/temporalio"
	@touch $@

FORCE:

demo: env
	@$(BIN)/python examples/demo.py

# Gemini where there is a key; else the words of SCRIPT, spoken by a local server in the Gemini wire format.
worker: env
	@set -- $(BIN)/python worker.py --dev --project "$(PROJECT)"; \
	if [ -z "$$GOOGLE_API_KEY$$GOOGLE_GEMINI_BASE_URL" ] && [ -f "$(SCRIPT)" ]; then \
		echo "No GOOGLE_API_KEY: the model says what $(SCRIPT) says."; \
		set -- $(BIN)/python -m agentvisor.local_gemini --script "$(SCRIPT)" -- "$$@"; \
	fi; \
	exec "$$@"

# The group has what is compared with; uv takes it away again with the next change of the environment.
bench: env
	@$(UV) sync --locked --quiet --group bench
	@$(BIN)/python -m benchmarks $(ARGS)

lint: env
	@status=0; \
	$(BIN)/ruff format --check --quiet . || { echo "Run: make format"; status=1; }; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/basedpyright || status=1; \
	$(BIN)/lint-imports || status=1; \
	exit $$status

format: env
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

test: env
	@status=0; \
	$(MAKE) --no-print-directory lint || { status=1; echo "make lint failed; the tests run all the same."; }; \
	$(BIN)/pytest -n $(TESTERS) --dist loadfile $(ARGS) || status=1; \
	exit $$status

clean:
	rm -rf .venv .uv .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist
