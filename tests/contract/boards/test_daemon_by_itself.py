"""A daemon that a hook starts ignores the folder and the environment of its start."""

import json
import os
import select
import signal
import sys
from pathlib import Path

import pytest
from support.daemon import answers, daemon_pid, wait_until
from support.host import measured, run_on_payload

MODULES = ("uvicorn", "secrets", "sitecustomize", "usercustomize", "tailhook", "sqlalchemy")
# Like a command that the user types: Python does not look for modules in the project's folder.
BOARD = [
    sys.executable,
    "-E",
    "-c",
    "import sys; del sys.path[0]; from tailhook.plates.client import ensure_daemon; ensure_daemon()",
]


@pytest.fixture(params=["hook", "board"])
def started(request, own, project):
    """Yield a daemon that was started in a cloned project with its own modules; `pipe` was open in its parent."""
    own.start().stop()  # leaves what starts it
    for name in MODULES:
        (project.folder / f"{name}.py").write_text(f"open({str(project.home / 'ran')!r}, 'w')\nraise SystemExit(3)\n")
    argv = measured([*project.argv[:-1], "plates"]) if request.param == "hook" else BOARD
    own.pipe, writing = os.pipe()
    run_on_payload(
        argv,
        json.dumps(project.payload(hook_event_name="UserPromptSubmit")).encode(),
        env={**own.env, "PYTHONPATH": str(project.folder), "TAILHOOK_RUN_ID": "secret"},
        cwd=project.folder,
        pass_fds=[writing],
        check=True,
    )
    os.close(writing)
    try:
        wait_until(lambda: answers(own))
        wait_until(lambda: own.ask("GET", "/health").status_code == 200)
        own.pid = daemon_pid(own)
        yield own
    finally:
        os.close(own.pipe)
        if (own.runtime / "http").exists():
            os.kill(daemon_pid(own), signal.SIGTERM)
            wait_until(lambda: not (own.runtime / "http").exists())


def test_no_module_of_the_project_runs(started, project):
    assert not (project.home / "ran").exists()


def test_it_holds_nothing_of_the_process_that_started_it(started, project):
    process = Path(f"/proc/{started.pid}")
    assert (process / "cwd").readlink() == Path("/")
    assert select.select([started.pipe], [], [], 10)[0]
    assert os.read(started.pipe, 1) == b""
    names = {line.partition(b"=")[0] for line in (process / "environ").read_bytes().split(b"\0")}
    assert b"HOME" in names
    assert not [name for name in names if name.startswith(b"PYTHON") or name == b"TAILHOOK_RUN_ID"]
