"""Daemons, pools, scans and benchmarks for the tests of whole processes."""

import contextlib
import json
import os
import posix
import shutil
from functools import partial
from pathlib import Path

import pytest
from support.daemon import daemon_in
from support.host import COVERAGE, ENVIRONMENT, HANGS_S, SANITIZER, short_folder, tailhook, wait_until
from support.library_sample import said, text, write_sample
from support.pool import PACKAGE, Pool, set_constants

# The tests of these modules run each hook cold and warm, and compare the two.
IN_BOTH_FORMS = {
    f"test_{name}"
    for name in (
        *("hook_process", "hosts", "idle_process", "idle_store", "ralph_process", "ralph_complaints", "ralph_diagrams"),
        *("triage_process", "memory_process", "gate_process", "plates_process", "evidence_process"),
        *("state_folder", "concurrency"),
    )
}


def pytest_generate_tests(metafunc):
    """Let the tests of these modules run in both forms; `one_form`: each by itself, `cold_form`: one of them.

    A sanitizer's runtime and the measurement of coverage are only in processes that a test starts.
    """
    if metafunc.module.__name__ not in IN_BOTH_FORMS or "form" not in metafunc.fixturenames or SANITIZER or COVERAGE:
        return
    markers = {mark.name for mark in metafunc.definition.iter_markers()}
    if "cold_form" not in markers:
        metafunc.parametrize("form", ["cold", "warm"] if "one_form" in markers else ["both"])


@pytest.fixture
def short_path():
    """Yield a folder with a short path: the path of a socket has at most 107 bytes."""
    with short_folder() as folder:
        yield Path(folder)


@pytest.fixture
def home():
    """Yield a home with a short path."""
    with short_folder() as folder:
        yield Path(folder)


@pytest.fixture
def pool(home):
    """Yield a pool of its own for a test."""
    with Pool(home) as one:
        yield one


@pytest.fixture
def site(home):
    """Return a copy of the package that a test may change. Its hooks wait for their payload as long as a test does."""
    being_written = shutil.ignore_patterns("*.pyc.*")  # another process renames it, perhaps before it is copied
    copy = shutil.copytree(PACKAGE, home / "site" / "tailhook", ignore=being_written)
    set_constants(copy / "hook" / "payload.py", PAYLOAD_TIMEOUT_S=HANGS_S)
    return copy


@pytest.fixture
def patient_pool(home, site):
    """Yield a pool of such a copy: on a busy machine, a test takes longer than a hook waits otherwise."""
    with Pool(home, package=site) as one:
        yield one


@pytest.fixture(scope="session")
def shared_daemon(tmp_path_factory):
    """Yield a running daemon that the tests of a worker share."""
    with daemon_in(tmp_path_factory.mktemp("daemon")) as one:
        yield one.start()


@pytest.fixture(scope="module")
def daemon(shared_daemon):
    """Return a running daemon without plates, which a module's tests share."""
    shared_daemon.remove_plates()
    return shared_daemon


@pytest.fixture
def own(tmp_path):
    """Yield a daemon for one test; it is not started. Its database has empty tables."""
    with daemon_in(tmp_path) as one:
        one.finds_tables = True
        yield one


# ---- scans ---------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """Return a folder with two sessions; one has a sub-agent."""
    found = tmp_path / "transcripts"
    found.mkdir()
    write_sample(found)
    return found


@pytest.fixture
def scan(tmp_path, folder):
    """Run `tailhook scan` in a folder of its own, on the sample or on other sources."""

    def run(*words, sources=("transcripts",), exit_code=0, **env):
        home = {"HOME": str(tmp_path), "TZ": "UTC", **env}
        done = tailhook("scan", *words, *map(str, sources), env=home, cwd=tmp_path)
        assert done.returncode == exit_code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def rows(scan):
    """Run it and return its rows."""

    def run(*words, **options):
        return [json.loads(line) for line in scan(*words, **options).stdout.splitlines()]

    return run


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Return a folder with many names of one file: 20 GB to read, without needing the space."""
    found = tmp_path_factory.mktemp("many")
    line = json.dumps(said(2, "m-1", text("I run it first. " * 20), 3)) + "\n"
    (found / "0000.jsonl").write_text(line * (5_000_000 // len(line)))
    for number in range(1, 4000):
        os.link(found / "0000.jsonl", found / f"{number:04}.jsonl")
    return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return a folder with all programs but valgrind. It takes a second for each hook."""
    folder = tmp_path_factory.mktemp("programs")
    for place in ENVIRONMENT["PATH"].split(os.pathsep):
        for path in Path(place).glob("*"):
            with contextlib.suppress(FileExistsError):  # the first one counts
                if path.name != "valgrind":
                    (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def bench(programs):
    """Run the benchmark in a home with a short path; returns the finished process.

    Some cases are measured again if the workers of the pool were too late for most runs: the machine was busy.
    """
    with short_folder() as home:

        def run(*words, path=programs, **constants):
            while True:
                done = tailhook("bench", *words, env={"HOME": home, "PATH": str(path)}, cwd=Path(home), **constants)
                if "--case" not in words or "no figures: a worker of the pool answered only" not in done.stderr:
                    return done

        yield run


# On a busy machine a run takes so long that the program reports it.
WITHOUT_NOTICES = {"tailhook.cli.bench.NOTICE_S": 1e9, "tailhook.bench.commands.NOTICE_S": 1e9}


@pytest.fixture
def figures(bench):
    """Run the benchmark; returns its rows, {title: row}."""

    def run(*words):
        done = bench("--json", *words, **WITHOUT_NOTICES)
        assert done.stderr == ""
        return done.returncode, {(row["case"], row["form"]): row for row in json.loads(done.stdout)["rows"]}

    return run


@pytest.fixture
def own_daemon(tmp_path, monkeypatch):
    """Yield a running daemon for one test; this process takes it for its user's daemon, too."""
    with daemon_in(tmp_path) as one:
        take_for_users(one, monkeypatch)
        one.finds_tables = True
        yield one.start()


@pytest.fixture
def board_daemon(daemon, monkeypatch):
    """Return the shared daemon, without plates; this process takes it for its user's daemon, too."""
    daemon.remove_plates()
    wait_until(lambda: not daemon.has_plates_for_a_board())
    take_for_users(daemon, monkeypatch)
    return daemon


def take_for_users(one, monkeypatch):
    """Let this process, and what it starts with the daemon's environment, find the daemon and start no other one."""
    monkeypatch.setitem(one.env, "TAILHOOK_NO_AUTOSTART", "1")
    monkeypatch.setenv("TAILHOOK_NO_AUTOSTART", "1")
    monkeypatch.setitem(posix.environ, b"HOME", os.fsencode(one.home))
    for name in (b"XDG_RUNTIME_DIR", b"XDG_STATE_HOME"):
        monkeypatch.delitem(posix.environ, name, raising=False)


@pytest.fixture
def user_settings(project) -> Path:
    """Return the path of the user's settings file; it does not exist."""
    return project.home / ".claude" / "settings.json"


@pytest.fixture
def write_settings(user_settings):
    """Write the user's settings."""

    def write(text: str) -> bytes:
        user_settings.parent.mkdir(exist_ok=True)
        user_settings.write_bytes(text.encode())
        return user_settings.read_bytes()

    return write


@pytest.fixture
def loop(project):
    """Run `tailhook loop …`; `session` is the agent's that runs it."""
    return partial(project.as_agent, "loop")


# ---- the doctor ----------------------------------------------------------------


@pytest.fixture
def settings(project) -> Path:
    """Return the user's settings file, with the hooks installed."""
    assert project.tailhook("install", "--yes", "--block-cap", "0").returncode == 0
    return project.home / ".claude" / "settings.json"


@pytest.fixture
def examined(project):
    """Run the doctor; return the findings of one check that are not well, and the exit code.

    Hooks are timed only if they are the check.
    """

    def run(check, *words, **env):
        constants = {} if check == "hook" else {"tailhook.doctor.checks.ROUNDS": 0}
        env = {**project.env, **env}
        done = tailhook("doctor", "--json", *words, env=env, cwd=project.folder, **constants)
        assert done.stderr.count("\n") == ("defaults are used" in done.stderr)
        facts = json.loads(done.stdout)
        assert facts["well"] == (done.returncode == 0)
        found = [finding for finding in facts["findings"] if finding["check"] == check and finding["status"] != "ok"]
        assert all(finding["advice"] for finding in found)
        return found, done.returncode

    return run
