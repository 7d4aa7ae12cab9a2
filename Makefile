# Quarterdeck. Every target makes .venv by itself when it is missing or older than what it was made from.
# `make PYTHON=python3.12` picks another interpreter.

PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

HAZELCAST = 4.2.8 5.3.8 5.5.0 5.6.0 5.7.0  # versions of the product whose members are watched
MAVEN_GET = mvn -q org.apache.maven.plugins:maven-dependency-plugin:get -Dtransitive=false

MUTANTS =  # names of mutants to try; all when empty

.PHONY: console pipeline web test test-long test-hazelcast test-s3 test-lowest mutants lint bench screenshots docs release clean help

console: .venv/.base  ## the console on a live cluster of five; without a terminal, the demo `split`
	@$(BIN)/quarterdeck console

pipeline: .venv/.pipeline  ## add what `quarterdeck audit` needs: Spark and a Java that comes with it

web: .venv/.web  ## the console in a browser on this machine; prints the URL
	@$(BIN)/quarterdeck web

# Hundreds of processes would compile the same modules again where an environment forbids Python to keep what it compiled.
test test-long: export PYTHONDONTWRITEBYTECODE =

# Each of the processes would compile what the others compile at the same time.
test: .venv/.pipeline .venv/.dev  ## all tests but the longest, on three processes, for many of them wait
	@$(BIN)/python -m compileall -q -j 0 $(addprefix quarterdeck/,app backend cli widgets)
	$(BIN)/python -m pytest -q -n 3 --dist loadgroup

# The scripts of faults on real members take more than an hour, in which they wait: `make test-hazelcast` has them.
test-long: .venv/.pipeline .venv/.dev  ## what takes long: Sparks of their own, more seeds, more examples of every property
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "long or hypothesis" --hypothesis-profile=long --timeout=900 \
	  --durations=30 -rfE --ignore=tests/hazelcast/real/test_fault_scripts.py

test-hazelcast: .venv/.pipeline .venv/.dev  ## watch unmodified members of Hazelcast in trouble; needs root, Java 17, Maven and iproute2
	@set -e; for version in $(HAZELCAST); do $(MAVEN_GET) -Dartifact=com.hazelcast:hazelcast:$$version; done
	$(BIN)/python -m pytest -q -m long --timeout=900 tests/hazelcast/real

test-s3: .venv/.s3  ## journals and tables in S3, against moto's server
	$(BIN)/python -m pytest -q -m long tests/pipeline/test_s3.py tests/pipeline/test_address.py

test-lowest: .venv/.release  ## the member's interface with the lowest versions of libraries that pyproject.toml allows
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/lowest
	$(BIN)/uv pip install --quiet --python build/lowest --resolution lowest-direct --editable .
	$(BIN)/uv pip install --quiet --python build/lowest --constraint constraints.txt hypothesis pytest pytest-timeout pyyaml trustme
	build/lowest/bin/python -m pytest -q tests/service/rest tests/service/configuration tests/service/http/test_hostile_requests.py \
	  tests/service/http/test_unknown_paths.py tests/service/console_api/test_routes.py tests/service/console_api/test_event_stream.py

mutants: .venv/.pipeline .venv/.dev  ## plant every fault of tests/mutants and see who notices; takes hours; `make mutants MUTANTS=name`
	$(BIN)/python -m tests.mutants $(MUTANTS)

lint: .venv/.dev  ## style, types, and the arrows between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff check --preview --select DOC102,DOC202,DOC403,DOC501 .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.pipeline .venv/.dev  ## measure; one JSON line per script, kept in build/bench
	@mkdir -p build/bench
	@set -e; for script in tests/bench/*.py; do \
	  result=build/bench/$$(basename $$script .py).json; \
	  $(BIN)/python $$script > $$result; cat $$result; \
	done

screenshots: .venv/.base  ## let the console draw the pictures of the documents again
	$(BIN)/python -m docs.generators.export_screenshots

docs: .venv/.docs  ## the documents as a site, in build/site; fails on links that lead nowhere
	@$(BIN)/python -m docs.generators.export_screenshots --light build/light-pictures
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet -f .ci/mkdocs.yml
	@echo "read them with: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site"

release: .venv/.release  ## wheel and sdist in dist, built, checked and tried; DRAFT=1 allows what is not committed or dated
	@.ci/release

clean:  ## remove what builds and tests leave behind; .venv stays
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*  ## /\1\t/p' Makefile | expand -t 16

# The stamps. A missing or dangling interpreter is made anew; a newer pyproject.toml or constraints.txt installs again.

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later, please: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear .venv

.venv/.base: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) .
	@$(BIN)/python -m docs.generators.json_schemas
	@touch $@

.venv/.pipeline: .venv/.base
	$(INSTALL) '.[pipeline,delta]'
	@touch $@

.venv/.web: .venv/.base
	$(INSTALL) '.[web]'
	@touch $@

.venv/.docs: .venv/.base
	$(INSTALL) '.[docs]'
	@touch $@

.venv/.release: .venv/.base
	$(INSTALL) '.[release]'
	@touch $@

.venv/.s3: .venv/.pipeline .venv/.dev
	$(INSTALL) '.[s3]'
	@touch $@

.venv/.dev: .venv/.web
	$(INSTALL) '.[dev]'
	@touch $@
