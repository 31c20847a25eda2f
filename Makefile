# make book    build the book and read it on this machine
# make test    run every test
# make study   open the chapters in JupyterLab
# make labs    run collectives and splits on real processes
#
# Needs make and Python 3.11 or newer (another one: make PYTHON=python3.13 book). A step that is done is not done
# again.

# Or each of the many processes of a test would compile all anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV    = .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.installed
HTML    = _build/html
BUILT   = _build/.built
WORKERS = 3
PDF     = _build/The-Algebra-of-Distributed-Training.pdf
LABS    = .venv-labs
COURSE  = .venv-course
RANKS   = 4
PIP     = $(BIN)/python -m pip --disable-pip-version-check

SOURCES = _config.yml _toc.yml $(wildcard *.md references.bib _templates/*.html _templates/*/* _static/* capacity/pictures/static/* \
          tools/page.py tools/search.js tools/layers.py tools/letters.py tools/make_plan.py tools/plan/* tools/toolkit.py tools/reading.py \
          tools/landing.* tools/publish.py CITATION.cff \
          $(wildcard capacity/*.py capacity/formulas/*.py capacity/specs/*.toml capacity/specs/recorded/*) vendor/_static/*/* labs/recipes/* \
          chapters/*.ipynb exercises/*.ipynb solutions/*.ipynb appendices/* labs/*.ipynb labs/recorded/*)

.PHONY: help book html pdf test study labs course measure bench mutants notebooks check lock wheel clean

help:
	@echo "make book       build the book and serve it on this machine"
	@echo "make html       build it only ($(HTML)/index.html)"
	@echo "make pdf        print it, chapters, exercises and appendices, into one file ($(PDF))"
	@echo "make study      open the chapters in JupyterLab"
	@echo "make test       run every test"
	@echo "make labs       run collectives and splits on real processes (PyTorch, in $(LABS))"
	@echo "make notebooks  derive the exercises and appendices, execute every notebook in place"
	@echo "make check      the same, but only report what would change, and which chapter is slow"
	@echo "make course     exercises as nbgrader takes them, their key, a site without solutions; graded once"
	@echo "make measure    what a reader meets on each page: words, code, pictures, clipped boxes"
	@echo "make bench      time the package"
	@echo "make mutants    change each formula and see which test notices"
	@echo "make wheel      the package alone, in dist/"
	@echo "make clean      remove the built book; the environment stays (it is $(VENV))"

book: html
	@$(BIN)/python tools/serve.py $(HTML)

html: $(BUILT)

pdf: $(PDF)

# Trusted: what the book's notebooks have drawn is shown as it was saved, before any cell is run.
study: $(READY)
	@$(BIN)/jupyter trust chapters/*.ipynb exercises/*.ipynb solutions/*.ipynb appendices/*.ipynb labs/*.ipynb >/dev/null
	$(BIN)/jupyter lab --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate \
	  --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/chapters $(STUDY)

test: $(READY) $(BUILT)
	$(BIN)/python -m pytest -n $(WORKERS) $(TESTS)

# Real processes talk over this machine's loopback; OMP_NUM_THREADS: they share its cores.
labs: $(LABS)/.installed
	@$(LABS)/bin/python labs/launch.py $(RANKS) labs/lab[0-2]_*.py labs/lab[4-8]_*.py labs/lab1[0-24-9]_*.py labs/lab2[0-2]_*.py \
	  labs/recipes/*.py
	@export OMP_NUM_THREADS=1; for lab in labs/lab3_fake_ranks.py labs/lab9_memory.py; do \
	  echo "$$lab in one process"; $(LABS)/bin/python $$lab || exit 1; done
	@echo "labs/lab13_failures.py: jobs that fail and resume"
	@OMP_NUM_THREADS=1 $(LABS)/bin/python labs/lab13_failures.py
	@echo "labs/lab23_missing.py: jobs with a rank that is not there"
	@OMP_NUM_THREADS=1 $(LABS)/bin/python labs/lab23_missing.py
	@echo "labs/failures.py: labs that break"
	@OMP_NUM_THREADS=1 $(LABS)/bin/python labs/failures.py

# nbgrader has an environment of its own; what it makes of the book, it grades here once.
course: $(READY) $(COURSE)/.installed
	$(BIN)/python tools/make_course.py _build/course
	@PATH="$(CURDIR)/$(COURSE)/bin:$$PATH" $(COURSE)/bin/python tools/try_course.py _build/course

measure: $(BUILT)
	$(BIN)/python tools/measure.py

bench: $(READY)
	$(BIN)/python tools/bench.py

mutants: $(READY)
	$(BIN)/python tools/mutants.py

notebooks: $(READY)
	$(BIN)/python tools/make_stub.py
	$(BIN)/python tools/make_appendices.py
	$(BIN)/python tools/make_exercises.py
	$(BIN)/python tools/execute.py -j $(WORKERS)

check: $(READY)
	$(BIN)/python tools/make_stub.py --check
	$(BIN)/python tools/make_appendices.py --check
	$(BIN)/python tools/make_exercises.py --check
	$(BIN)/python tools/execute.py -j $(WORKERS) --check

clean:
	rm -rf _build

# A fresh environment from requirements.txt, written down package by package.
lock:
	rm -rf _build/lock
	$(PYTHON) -m venv _build/lock
	_build/lock/bin/python -m pip install -q -r requirements.txt
	_build/lock/bin/python -m pip freeze --all | grep -v '^pip==' > requirements.lock.txt
	rm -rf _build/lock

$(READY): requirements.lock.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "The book needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
	       "Name another one: make PYTHON=python3.13 book"; exit 1; }
	@echo "Installing the book's packages into $(VENV) (about a minute, once)"
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing (Debian: apt install python3-venv)."; exit 1; }
	@$(PIP) install -qq -r requirements.lock.txt
	@$(PIP) install -qq --no-deps --no-build-isolation -e .
	@touch $@

# PyTorch is a gigabyte that no chapter needs: the labs have an environment of their own.
$(LABS)/.installed: labs/requirements.txt pyproject.toml
	@echo "Installing PyTorch into $(LABS) (about a minute, once)"
	@$(PYTHON) -m venv $(LABS) || { echo "Python's venv module is missing (Debian: apt install python3-venv)."; exit 1; }
	@$(LABS)/bin/python -m pip --disable-pip-version-check install -qq -r labs/requirements.txt
	@$(LABS)/bin/python -m pip --disable-pip-version-check install -qq --no-deps --no-build-isolation -e .
	@touch $@

# The package alone, as pip installs it.
wheel: $(READY)
	@rm -rf dist build
	$(PIP) wheel -q --no-deps --no-build-isolation -w dist .

$(COURSE)/.installed: tools/course/requirements.txt pyproject.toml
	@echo "Installing nbgrader into $(COURSE) (about a minute, once)"
	@$(PYTHON) -m venv $(COURSE) || { echo "Python's venv module is missing (Debian: apt install python3-venv)."; exit 1; }
	@$(COURSE)/bin/python -m pip --disable-pip-version-check install -qq -r tools/course/requirements.txt
	@$(COURSE)/bin/python -m pip --disable-pip-version-check install -qq --no-deps --no-build-isolation -e .
	@touch $@

# Always whole: an incremental build keeps old side bars and forgets the warnings of pages it does not read.
$(BUILT): $(READY) $(SOURCES)
	@rm -rf _build
	@echo "Building the book"
	@$(BIN)/jupyter-book build . -W --keep-going -q >/dev/null && echo "Built $(HTML)/index.html"
	@touch $@

$(PDF): $(BUILT) tools/make_pdf.py $(wildcard tools/pdf/*) CITATION.cff
	@echo "Printing the book"
	@$(BIN)/python tools/make_pdf.py $@
