# Everything a developer runs. Each goal sets up what it needs, in .venv.

PYTHON ?= python3
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(5 * (os.cpu_count() or 1) // 2)')
VENV := .venv
BIN := $(VENV)/bin
CORE := $(wildcard ext/*.* ext/*/*.*) setup.py pyproject.toml src/tailhook/patterns/automaton.py $(wildcard src/tailhook/machines/*.py) \
    src/tailhook/fleet/typed_rows.py

# The tests start thousands of processes. Without byte code, each of them would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test stress host host-matrix contracts fuzz faults sanitize coverage mutants bench figures instructions interpreters corpora pictures warm lint format clean threads engines extras

help: ## show the goals
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

demo: $(VENV)/built $(VENV)/board ## every machine's hook on a large transcript beside bare Python; the board, live
	@$(BIN)/python examples/demo.py

# Five workers for two processors: most tests wait for processes that they started. The browser's tests come first, so
# the first worker has them. Idle workers take over tests from the end of its list only, so one browser runs.
test: $(VENV)/built $(VENV)/test ## all tests, on every processor
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

stress: $(VENV)/built $(VENV)/test ## all tests beside four busy processes, RUNS (10) times, with each run's result and time
	@.ci/stress

# If clang is installed, the core's coverage guides the inputs; libFuzzer's runtime is the one in atheris.
fuzz: $(VENV)/built $(VENV)/test ## long fuzzing: FUZZ_SECONDS (60) for each target; the code map's worst cases counted
	$(BIN)/python tests/fuzz/markdown_linear.py
	TAILHOOK_FUZZ=1 $(BIN)/python -m pytest -n $(WORKERS) tests/fuzz tests/property tests/contract/boards/test_daemon_api.py \
	    tests/contract/test_concurrency.py tests/unit/test_bench_rounds.py tests/contract/boards/test_daemon_keeps.py \
	    tests/contract/boards/test_daemon_transcripts.py tests/contract/test_anatomy_command.py tests/unit/boards/test_plates_inbox.py \
	    $$(grep -lr '^@given' tests/unit --include='*.py')
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/python -m pip install --quiet '.[test]'
	.venv-fuzz/bin/python -m pip install --quiet atheris || echo "no atheris for this machine: the inputs are not guided"
	@if command -v clang >/dev/null && .venv-fuzz/bin/python -c 'import atheris' 2>/dev/null; then \
	    rm -rf build/release; \
	    CC=clang LDSHARED="clang -shared" \
	    CFLAGS="-fsanitize=address -fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp" \
	        .venv-fuzz/bin/python -m pip install --quiet --force-reinstall --no-deps . && rm -rf build/release; \
	    LD_PRELOAD=$$(echo .venv-fuzz/lib/python*/site-packages/asan_with_fuzzer.so) PYTHONMALLOC=malloc \
	    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 .venv-fuzz/bin/python tests/fuzz/long.py; \
	else \
	    echo "no clang or no atheris: the core's own coverage does not guide the inputs"; \
	    .venv-fuzz/bin/python tests/fuzz/long.py; \
	fi

faults: $(VENV)/built $(VENV)/test ## the hook killed at every system call, the commands after every change of the disk
	TAILHOOK_FAULTS=1 $(BIN)/python -m pytest tests/faults

# A new environment that has the packages of .venv and the sources, too. What is installed in it comes before them. These
# are plain paths, which pip leaves out when it builds: a `site.addsitedir` would give it the setuptools of .venv.
borrow = $(PYTHON) -m venv $(1) && $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"), "$(CURDIR)/src", sep="\n")' \
    >$$(echo $(1)/lib/python3*/site-packages)/borrowed.pth

# Chromium is not built with the sanitizers, and runs no line of Python. Its tests are left out file by file, because
# pytest does not ignore a folder of its `testpaths`.
WITHOUT_BROWSER := --ignore-glob='tests/browser/*'
sanitize: $(VENV)/test ## the suite with a core built with AddressSanitizer and UndefinedBehaviorSanitizer; TESTS=... a part of it
	$(call borrow,.venv-sanitize)
	TAILHOOK_SANITIZE=1 .venv-sanitize/bin/python -m pip install --quiet --no-deps .
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" \
	    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc \
	    .venv-sanitize/bin/python -m pytest -n auto --dist worksteal -p no:cacheprovider $(or $(TESTS),$(WITHOUT_BROWSER))

# The tests in which threads share a question, a batch or a scan; the rest of the suite has no threads in the core.
THREADED := tests/unit/test_scan_local.py tests/unit/test_range_*.py tests/unit/test_response_counter.py \
    -k "thread or order or stop or flooded or fails or batch or while_their_file"
threads: $(VENV)/test ## the scan's threads with a core built with ThreadSanitizer
	$(call borrow,.venv-threads)
	TAILHOOK_SANITIZE=thread .venv-threads/bin/python -m pip install --quiet --no-deps .
	LD_PRELOAD="$$(cc -print-file-name=libtsan.so)" TSAN_OPTIONS=exitcode=66:halt_on_error=1 \
	    .venv-threads/bin/python -m pytest --capture=sys -p no:cacheprovider $(THREADED)

coverage: $(VENV)/test ## branches of the Python code and lines of the core that the suite reaches
	$(call borrow,.venv-coverage)
	.venv-coverage/bin/python -m pip install --quiet 'coverage[toml]>=7.10'
	rm -rf build/coverage
	TAILHOOK_COVERAGE=1 .venv-coverage/bin/python -m pip install --quiet --no-deps .
	.venv-coverage/bin/python -m coverage erase
	.venv-coverage/bin/python -m coverage run -m pytest -q -p no:cacheprovider $(WITHOUT_BROWSER)
	.venv-coverage/bin/python -m coverage combine --quiet
	.venv-coverage/bin/python -m coverage report
	@gcov -n $$(find build/coverage -name _core.gcda) 2>/dev/null \
	    | awk '/^File/ {file = $$2} /^Lines/ && file ~ /ext\// {split($$2, part, ":"); print part[2], "of", $$4, "lines", file}'

# Each mutant is one run of its module's tests, so all of them take too long for every day.
MUTANTS ?= 20
mutants: $(VENV)/built $(VENV)/mutants ## changes in the code that no test notices: a fixed sample of MUTANTS (20) a module, or MUTANTS=all
	$(BIN)/python tests/mutants/run.py --mutants $(MUTANTS) $(MODULES)

# The second command measures, so it runs by itself.
host: $(VENV)/built $(VENV)/test ## whole sessions of the real agent hosts, without a model (needs npm and unshare); TESTS=... a part of it
	$(if $(TESTS),,$(BIN)/python tests/endtoend/run_hosts.py -n $(WORKERS) --dist worksteal -k "not test_claude_times")
	$(BIN)/python tests/endtoend/run_hosts.py $(or $(TESTS),-k "test_claude_times and not events_of_a_turn and not many_agents and not handlers_that")

contracts: $(VENV)/contracts ## what the newest releases of the agent hosts send to hooks and take from them (needs npm); HOSTS="codex@0.169.0", CHECK=1
	$(BIN)/python -m contracts $(if $(CHECK),--check) $(HOSTS)

host-matrix: $(VENV)/built $(VENV)/test ## the same sessions in many releases of the agent hosts, for docs/hosts.md (hours); HOSTS="codex@0.169.0", ENDS=1
	$(BIN)/python tests/endtoend/host_matrix.py $(if $(ENDS),--ends) $(HOSTS)

bench: $(VENV)/built $(VENV)/bench ## the short benchmarks; a table and plots in benches/results; ONCE=1 runs each once, without them
	$(BIN)/python -m pytest benches $(if $(ONCE),--benchmark-disable,--benchmark-json=build/benches.json)
	$(if $(ONCE),,$(BIN)/python benches/report.py build/benches.json benches/results)
	$(BIN)/tailhook bench --max-ratio 1.35 || [ $$? = 3 ]  # too noisy to decide: the computer is busy

# In a folder of its own: these packages are larger than all others together.
engines: $(VENV)/test ## the scan on Daft, Daft on Ray and Ray Data, with an S3 server, and in libraries of data frames: the same rows, also after a worker is killed
	$(call borrow,.venv-engines)
	.venv-engines/bin/python -m pip install --quiet 'tailhook[engines]'
	.venv-engines/bin/python -m pytest -p no:cacheprovider tests/engines

extras: $(VENV)/built $(VENV)/test ## the wheel for each CPython at hand, and with each extra, in environments of their own: it installs and answers
	$(BIN)/python -m pytest -n logical --dist worksteal -p no:cacheprovider tests/extras

ROUNDS := 300
warm: $(VENV)/built ## the goals of the pool, in one run, and its faults; the figures in docs/performance.md
	$(BIN)/python benches/warm_goals.py --rounds $(ROUNDS)
	$(BIN)/python benches/warm_faults.py

figures: $(VENV)/built $(VENV)/test engines ## other figures in docs/performance.md: the boards with many sessions and listeners (needs Chromium); the daemon under load, killed, and with a long spool; scans on Daft
	$(BIN)/python benches/boards_load.py
	$(BIN)/python benches/plates_load.py
	$(BIN)/python benches/plates_load.py --kill
	$(BIN)/python benches/plates_load.py --spool 100000
	$(BIN)/python benches/short_list.py
	PYTHONPATH=tests .venv-engines/bin/python benches/engines.py

corpora: $(VENV)/built $(VENV)/test ## fetch the published corpora that tests compare with
	PYTHONPATH=tests $(BIN)/python -m support.fetch_corpora

pictures: $(VENV)/built $(VENV)/test ## the pictures on the pages: of both boards, and of `tailhook anatomy` and `tailhook explain` (needs Chromium)
	$(BIN)/python examples/board.py docs/images/board-terminal.svg
	$(BIN)/python tests/browser/picture.py docs/images board-web board-web-details
	mkdir -p build/pictures
	$(BIN)/python examples/session.py build/pictures/session.jsonl
	$(BIN)/tailhook anatomy build/pictures/session.jsonl -o docs/images/anatomy.svg
	$(BIN)/tailhook explain build/pictures/session.jsonl --html build/pictures/explain.html
	$(BIN)/python tests/browser/page_picture.py build/pictures/explain.html docs/images/explain.png docs/images/explain-dark.png

instructions: $(VENV)/built $(VENV)/test ## a hook's instructions beside their baseline; a hook's and the library's beside four times the input (needs valgrind)
	$(BIN)/python benches/instructions.py
	TAILHOOK_FUZZ=1 $(BIN)/python -m pytest -n logical tests/contract/test_hook_costs.py \
	    tests/contract/test_library_costs.py tests/contract/test_bench_command.py -k "costs or instructions_are_counted"

# What depends on the interpreter: the core is compiled again, so its unit tests run on each. The newest repeats more of
# `make test`: random inputs, real transcripts, and the processes that may differ (what the hook imports, both its
# forms, the daemon, the terminal board, the scan). Kills, crowds, sizes, the browser, the C compiler and the words of
# pages do not depend on the interpreter.
PROCESSES = $(addprefix tests/contract/test_,hook_process.py hook_modules.py pool_process.py plates_process.py \
	scan_command.py scan_formats.py usage_command.py install_command.py doctor_command.py) \
	$(addprefix tests/contract/boards/test_,daemon_start.py daemon_corrupt.py board_surroundings.py)
ANYWHERE := $(addprefix --ignore=tests/unit/test_,words.py docs.py architecture.py run_profiles.py ci.py portable_c.py bench_rounds.py \
	host_contracts.py contract_readers.py)
# Tests of servers, which only the newest interpreter repeats.
WITHOUT_SERVERS := -k 'not postgresql' --ignore=tests/unit/test_scan_objects.py
interpreters: ## unit tests on each CPython at hand from 3.11 up, more on the newest; BUT=3.11 without that, ONLY=3.11
	@set -e; found=$$(ONLY=$(ONLY) .ci/interpreters $(BUT)); set -- $$found; \
	for python; do \
	    version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    shift; \
	    tests="tests/contract/test_hook_process.py $(WITHOUT_SERVERS)"; \
	    [ $$# != 0 ] || tests="$(PROCESSES) tests/property tests/corpora tests/fuzz"; \
	    echo "== CPython $$version"; \
	    $(MAKE) --no-print-directory test PYTHON=$$python VENV=.venv-$$version \
	        TESTS="-m 'not system' tests/unit $$tests $(ANYWHERE)"; \
	done

lint: $(VENV)/built $(VENV)/dev ## the linters and type checkers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH=$(CURDIR)/$(BIN):$$PATH cython-lint ext
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --python-version 3.11  # names that are only on Linux, or only in a newer Python
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/dev ## lay the code out
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what was built
	rm -rf build dist .venv .venv-* src/*.egg-info src/tailhook/*.so src/tailhook/pool/tailhook-hook
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

# ---- set-up ------------------------------------------------------------------

$(VENV)/made:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(VENV)/built: $(VENV)/made $(CORE)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# The package is there, so pip adds what the extra needs without building the core again. Each test worker would compile
# the tests again, at the same time as the others, so they are compiled here.
$(VENV)/board $(VENV)/test $(VENV)/contracts $(VENV)/mutants $(VENV)/dev $(VENV)/bench: $(VENV)/%: $(VENV)/built pyproject.toml
	$(BIN)/python -m pip install --quiet 'tailhook[$*]'
	@[ $* != test ] || .ci/postgresql
	@[ $* != test ] || $(BIN)/python -m pytest --collect-only -q >/dev/null || true
	@touch $@
