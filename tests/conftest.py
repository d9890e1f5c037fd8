"""What the tests share: the hook's argv, a project to run it in, and figures shown at the end of the run."""

import gc
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.both_forms import Forms
from support.host import Project, Stop, short_folder
from support.long_runs import IS_LONG, PART, examples, in_part
from support.oracles import jwz
from support.pool import Pool, hook_command

from tailhook import _core

MAX_NAME_CHARACTERS = 60  # characters of a parameter

# A shell starts background programs with these signals ignored, nohup(1) others with SIGHUP, and what the tests start
# would ignore them, too. A signal that is caught, and not ignored, has its default in a new program (execve(2)).
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda *_: None)
# Without a deadline, for the inputs too: a test that is slow on a busy machine has not failed. `make mutants` has its
# own profile. Hypothesis would load one of its own if CI is set. Only `make fuzz` draws new examples: `make test` has
# the same ones each time, and fails for the same reasons on each machine.
settings.register_profile(
    "tailhook",
    settings.get_profile("default"),
    deadline=None,
    derandomize=not IS_LONG,
    max_examples=min(100, examples(100)),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tailhook")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without the garbage collector, and keep what was collected out of its later runs.

    Thousands of tests live until the end: each full collection would visit their million objects in vain.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_make_parametrize_id(val):
    """Name a long parameter by its beginning and its length: the run's summary shows names whole."""
    shown = val.decode("latin-1") if isinstance(val, bytes) else str(val) if isinstance(val, (str, int)) else ""
    return (
        f"{ascii(shown[:MAX_NAME_CHARACTERS])[1:MAX_NAME_CHARACTERS]}...{len(shown)}"
        if len(shown) > MAX_NAME_CHARACTERS
        else None
    )


def pytest_sessionstart():
    """End a run that has a sanitizer's runtime, but a core built without it: it would find nothing."""
    for name in ("asan", "tsan"):
        is_loaded = f"lib{name}" in os.environ.get("LD_PRELOAD", "")
        if is_loaded and f"__{name}_init".encode() not in Path(_core.__file__).read_bytes():
            pytest.exit(f"{_core.__file__} is not built with lib{name}", returncode=pytest.ExitCode.USAGE_ERROR)


def pytest_report_header():
    return f"TAILHOOK_PART={PART}: a part of the tests" if PART else None


def pytest_collection_modifyitems(config, items):
    if not PART:
        return
    try:
        kept = in_part(items, PART)
    except ValueError as error:
        raise pytest.UsageError(f"TAILHOOK_PART: {error}") from None
    config.hook.pytest_deselected(items=list(set(items).difference(kept)))
    items[:] = kept


@pytest.fixture
def report(request):
    """Call it with a line that the run's summary shows."""
    return lambda line: request.node.user_properties.append(("figure", line))


def pytest_terminal_summary(terminalreporter):
    ended = [one for name in ("passed", "failed") for one in terminalreporter.stats.get(name, ()) if one.when == "call"]
    figures = [line for one in ended for name, line in one.user_properties if name == "figure"]
    if figures:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def postgres_url():
    """Yield the URL of a PostgreSQL server that tests share; skips a test if PostgreSQL is not installed."""
    from support.postgres import postgres  # it needs SQLAlchemy, which not every test has

    with postgres() as url:
        if url is None:
            pytest.skip("PostgreSQL is not installed")
        yield url


# ---- the hook as a process ---------------------------------------------------


@pytest.fixture(scope="session")
def cold_argv(tmp_path_factory) -> list[str]:
    """Return the argv of the hook that starts Python."""
    return hook_command("--cold", tmp_path_factory.mktemp("cold"))


@pytest.fixture(scope="session")
def both_forms() -> Iterator[Forms]:
    """Yield both forms of the hook; the pool of the warm one runs until the session's end."""
    with short_folder() as home, Pool(Path(home)) as pool:
        yield Forms(pool)


@pytest.fixture
def form() -> str:
    """Return the form of the hook that a test runs: "cold", "warm", or "both" one after the other."""
    return "cold"


@pytest.fixture
def hook_argv(request, form) -> list[str]:
    """Return the argv that a host should run."""
    if form == "cold":
        return request.getfixturevalue("cold_argv")
    return [*request.getfixturevalue("both_forms").warm, "idle"]


@pytest.fixture
def project(request, tmp_path, form, hook_argv) -> Project:
    """Return an empty project."""
    forms = request.getfixturevalue("both_forms") if form == "both" else None
    return Project(tmp_path / "project", tmp_path / "home", hook_argv, forms=forms)


@pytest.fixture
def run_idle(project):
    """Start from `state` (none if it is not given), write `said` as the agent's last message, and stop."""

    def run(said: str | None = None, *flags: str, state: dict | None = None, **fields: object) -> Stop:
        if state is not None:
            jwz.post(project.folder, json.dumps(state))
        return project.stop(said, *flags, **fields)

    return run
