"""The hook that reports an event, with the daemon up, down and hung, beside bare Python.

First what is reported, then the time.
"""

import contextlib
import json
import socket
import threading

import pytest

from tailhook.bench.cases import BenchProject, Case, no_state
from tailhook.bench.processes import run_once
from tailhook.pool.installation import real_interpreter


@contextlib.contextmanager
def listening(path, reading):
    """Bind the daemon's socket; read from it if `reading`."""
    path.parent.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(path))
        reader = threading.Thread(target=read_to_the_end, args=(daemon,))
        if reading:
            reader.start()
        yield
        if reading:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
                last.sendto(b"", str(path))
            reader.join()


def read_to_the_end(daemon):
    """Read every wake-up until an empty one."""
    while daemon.recv(16):
        pass


@pytest.fixture(scope="module", params=["up", "down", "hung"])
def event(request, tmp_path_factory):
    """Yield an event that is about to be reported."""
    folder = tmp_path_factory.mktemp("plates")
    stop = BenchProject(
        folder / "project", Case("plates", f"the daemon {request.param}", "Hm.", False, no_state), "10 KB"
    )
    stop.env["XDG_RUNTIME_DIR"] = str(folder / "run")
    path = folder / "run" / "tailhook" / "poke"
    with contextlib.nullcontext() if request.param == "down" else listening(path, request.param == "up"):
        stop.check()
        spool = stop.folder / ".local" / "state" / "tailhook" / "events"
        assert json.loads(spool.read_text())["event_type"] == "stop"
        yield stop


@pytest.mark.parametrize("engine", ["tailhook", "bare python"])
def test_plates_hook(benchmark, event, engine):
    argv = event.hook if engine == "tailhook" else [real_interpreter(), "-I", "-S", "-c", "pass"]
    benchmark.pedantic(run_once, (argv, event.payload, event.env), rounds=41, warmup_rounds=1, iterations=1)
    benchmark.extra_info["case"] = event.case.about
