"""The parts of the pool: requests, the workers' table, the times of hooks. A request leaves nothing in the modules."""

import contextlib
import json
import os
import posix
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.host import MEMORABLE, SANITIZER, Project, assistant
from support.host_payloads import BY_HOST, stamp, write
from support.triage import entry, pipeline

from tailhook._core import REASON_BUSY, REASON_NO_POOL, REASON_OFF, REQUEST_DESCRIPTORS, REQUEST_MAGIC, caller_identity
from tailhook.doctor.pool import check_pool, describe_hooks, p99_of
from tailhook.hook.machines import MACHINES
from tailhook.pool import worker as worker_module
from tailhook.pool.control import is_running
from tailhook.pool.installation import READY_LAYOUT, socket_of
from tailhook.pool.worker import REQUEST_LAYOUT, has_hung_up, parse_request, receive_in_time
from tailhook.pool.workers import BUSY, FREE, IDLE, WorkerTable
from tailhook.stores.hook_times import RECORD_BYTES, RECORDS, read_times, record_cold, record_hook

# ---- requests --------------------------------------------------------------------


def request_of(arguments, variables, magic=REQUEST_MAGIC, more=0, count=None, umask=0o22):
    """Return the bytes of a request.  more: added to its size."""
    strings = b"".join(one + b"\0" for one in (*arguments, *variables))
    numbers = (magic, 8), (7, 8), (len(strings) + more, 4), (len(arguments) if count is None else count, 4)
    head = b"".join(number.to_bytes(size, sys.byteorder) for number, size in (*numbers, (umask, 4), (99, 4)))
    return head + strings


@pytest.fixture
def descriptors():
    """Yield as many open descriptors as a request has; close the open ones at the end."""
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(REQUEST_DESCRIPTORS)]
    given = list(fds)
    yield fds
    for fd in given:
        with contextlib.suppress(OSError):
            os.close(fd)


@pytest.mark.parametrize(
    ("message", "layout"), [("tailhook_ready", READY_LAYOUT), ("tailhook_request", REQUEST_LAYOUT)]
)
def test_the_client_and_the_worker_have_one_layout_of_a_message(message, layout):
    header = (Path(__file__).parents[2] / "ext" / "os" / "request.h").read_text(encoding="utf-8")
    body = re.search(rf"^struct {message} {{\n(.*?)^}};", header, re.MULTILINE | re.DOTALL)[1]
    letters = {"uint64_t": "Q", "uint32_t": "I", "int32_t": "i"}
    members = re.findall(r"^ +(\w+) (\w+);", body, re.MULTILINE)
    formats = "".join(letters[kind] for kind, _ in members)
    assert layout.format == f"={formats}"
    asserted = re.findall(rf"^TAILHOOK_LIES_AT\((\d+), {message}, (\w+)\);", header, re.MULTILINE)
    assert asserted == [(str(struct.calcsize(f"={formats[:at]}")), name) for at, (_, name) in enumerate(members)]
    assert f"sizeof(struct {message}) == {layout.size}" in header


def test_a_request_has_what_a_process_gets(descriptors):
    data = request_of([b"hook", b"caf\xe9"], [b"A=1", b"B=x=y", b"A=2", b"EMPTY=", b"odd"])
    request = parse_request(data, descriptors)
    assert request.arguments == ["hook", "caf\udce9"]
    assert request.environment == {b"A": b"1", b"B": b"x=y", b"EMPTY": b""}  # as in `posix.environ`
    assert (request.started_ns, request.umask, request.parent) == (7, 0o22, 99)
    assert len(request.descriptors) == REQUEST_DESCRIPTORS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        request_of([b"hook"], [])[: REQUEST_LAYOUT.size - 1],
        request_of([b"hook"], [], magic=1),
        request_of([b"hook"], [], more=1),
        request_of([b"hook"], [b"A=1"])[:-1],
        request_of([], [b"A=1"]),
        request_of([b"hook"], [], count=2),
        request_of([b"hook"], [], count=2**32 - 1),
        request_of([b"hook"], [], umask=2**31),
        request_of([b"hook"], [], umask=0o1000),
    ],
)
def test_what_is_not_a_whole_request_is_refused_and_its_descriptors_closed(descriptors, data):
    given = list(descriptors)
    assert parse_request(data, descriptors) is None
    for fd in given:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_a_request_with_fewer_descriptors_is_refused(descriptors):
    os.close(descriptors.pop())
    assert parse_request(request_of([b"hook"], []), descriptors) is None


def test_a_client_that_stops_half_way_cannot_send_the_rest():
    worker, client = socket.socketpair()
    with worker, client:
        worker.settimeout(0.05)
        client.send(b"half")
        assert receive_in_time(worker, 100, []) == b"half"
        assert receive_in_time(worker, 100, []) == b""
        with pytest.raises(BrokenPipeError):
            client.send(b"the rest")


def test_a_request_that_comes_at_the_end_of_its_time_is_answered(monkeypatch):
    client, worker = socket.socketpair()
    receive = worker_module.receive_more

    def receive_late(*given):
        monkeypatch.setattr(worker_module, "receive_more", receive)
        client.send(b"whole")
        raise TimeoutError

    with client, worker:
        monkeypatch.setattr(worker_module, "receive_more", receive_late)
        assert receive_in_time(worker, 100, []) == b"whole"
        assert not has_hung_up(worker)
        client.close()
        assert has_hung_up(worker)


# ---- the table and the times ------------------------------------------------------


@pytest.fixture(autouse=True)
def times(tmp_path):
    """Make the folder of the times in that of a client."""
    (tmp_path / "times").mkdir()


def test_a_worker_only_writes_its_own_entry():
    table = WorkerTable(3)
    assert table.states() == bytes([FREE, FREE, FREE])
    table.set_state(1, BUSY)
    table.set_state(2, IDLE)
    assert table.states() == bytes([FREE, BUSY, IDLE])
    assert table.count_request(1, 50) == 1
    assert table.count_request(1, 40) == 2
    assert table.count_request(2, 45) == 1
    assert (table.last_request_ns(), table.count_requests()) == (45, 3)
    assert table.states() == bytes([FREE, BUSY, IDLE])


def test_only_the_last_hooks_of_each_event_are_kept(tmp_path):
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for number in range(RECORDS + 5):
        record_hook(str(tmp_path), "Stop", now - number, b"w")
    record_hook(str(tmp_path), "PreToolUse", now, b"n")
    times = read_times(str(tmp_path))
    assert {event: len(records) for event, records in times.items()} == {"PreToolUse": 1, "Stop": RECORDS}
    assert (tmp_path / "times" / "Stop").stat().st_size == RECORDS * RECORD_BYTES
    assert times["PreToolUse"][0][2] == b"n"
    assert times["Stop"] == sorted(times["Stop"])


def test_after_the_clock_was_set_back_the_last_hooks_are_kept(tmp_path):
    tomorrow = (time.time_ns() + 86_400 * 10**9).to_bytes(8, "big") + bytes(RECORD_BYTES - 9) + b"w"
    (tmp_path / "times" / "Stop").write_bytes(tomorrow * RECORDS)
    for _ in range(RECORDS + 5):
        record_hook(str(tmp_path), "Stop", 0, b"n")
    assert {way for _, _, way in read_times(str(tmp_path))["Stop"]} == {b"n"}


@pytest.mark.parametrize("event", ["../evil", "", "x" * 41, "caf\u00e9", "a/b", "a b"])
def test_an_event_with_an_odd_name_is_among_the_others(tmp_path, event):
    record_hook(str(tmp_path), event, 0, b"w")
    assert os.listdir(tmp_path / "times") == ["other"]


def test_a_torn_or_foreign_file_of_times_is_overwritten(tmp_path):
    (tmp_path / "times" / "Stop").write_bytes(b"x" * (RECORD_BYTES + 3))
    record_hook(str(tmp_path), "Stop", 0, b"w")
    assert len(read_times(str(tmp_path))["Stop"]) == 2


@pytest.mark.parametrize("mark", ["", "x", "12", "12n", "n/tmp", "12n/nowhere/at/all"])
def test_a_mark_that_cannot_be_used_changes_nothing(mark):
    record_cold(mark, "Stop")


def test_a_file_of_times_without_a_record_is_not_reported(tmp_path):
    folder = tmp_path / "0123456789abcdef"
    (folder / "times").mkdir(parents=True)
    (folder / "times" / "Stop").touch()  # the disk was full
    assert not [one for one in check_pool(f"{folder}/tailhook-hook") if "Stop hook" in one.what]


def test_the_ways_of_the_last_hooks_are_described():
    finding = describe_hooks("Stop", [(1.0, b"w")] * 98 + [(3.0, b"w"), (20.0, b"n")])
    assert finding.status == "ok"
    assert "the last 100 Stop hooks: 99 warm, median 1.0 ms, p99 3.0 ms" in finding.what
    assert "; 1 cold, 20.0 ms (no pool ran: 1)" in finding.what
    assert describe_hooks("Stop", [(1.74, b"w")]).what == "the last Stop hook: warm, 1.7 ms"
    assert describe_hooks("Stop", [(1.0, b"w")] * 9 + [(20.0, b"b")] * 11).status == "warning"
    assert describe_hooks("Stop", [(20.0, b"b")] * 11).status == "ok"
    assert p99_of(list(range(1, 101))) == 99


@pytest.mark.parametrize(
    ("config", "way", "status"),
    [
        ("{}", REASON_NO_POOL, "warning"),
        ('{"pool": {"autostart": false}}', REASON_NO_POOL, "ok"),
        ('{"pool": {"autostart": false}}', REASON_BUSY, "warning"),
        ("{}", REASON_OFF, "ok"),
    ],
)
def test_cold_hooks_are_a_warning_unless_the_user_keeps_pools_from_them(tmp_path, monkeypatch, config, way, status):
    monkeypatch.setattr("tailhook.doctor.pool.read_times", lambda _: {"Stop": [(0, 20_000_000, bytes([way]))] * 20})
    monkeypatch.setattr("tailhook.pool.control.user_config", lambda: str(tmp_path / "config.json"))
    (tmp_path / "config.json").write_text(config)
    (finding,) = (one for one in check_pool(f"{tmp_path}/tailhook-hook") if "Stop hooks" in one.what)
    assert finding.status == status


def test_a_hook_that_took_nearly_all_of_its_time_is_a_warning():
    for hooks in ([(9800.0, b"w")], [(1.0, b"w")] * 99 + [(9800.0, b"n")]):
        finding = describe_hooks("Stop", hooks)
        assert finding.status == "warning"
        assert "the slowest took 9.8 s, and a host ends a hook after 10 s" in finding.what


# ---- the kinds of callers ------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="without namespaces")
@pytest.mark.parametrize(
    "start",
    [
        ["nice", "-n", "5"],
        ["setpriv", "--no-new-privs"],
        *(["unshare", f"--{namespace}"] for namespace in ("mount", "uts", "user")),
        ["unshare", "--fork", "--pid"],
    ],
    ids=" ".join,
)
def test_another_kind_of_caller_has_another_identity(start):
    if not shutil.which(start[0]) or subprocess.run([*start, "true"], capture_output=True, check=False).returncode:
        pytest.skip("cannot start such a process")
    code = "from tailhook._core import caller_identity as one; print(one())"
    plain, other = (
        int(subprocess.run([*words, sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for words in ([], start)
    )
    assert plain == caller_identity()
    assert other not in (0, plain)


@pytest.mark.parametrize(("kind", "ending"), [(1, "00000001"), (0x123456789ABCDEF0, "9abcdef0"), (0, "00000000")])
def test_the_name_of_a_socket_ends_with_the_lower_half_of_the_kind(kind, ending):
    assert socket_of("/run/name", kind) == f"/run/name.{ending}"


# ---- nothing stays in the modules ---------------------------------------------------

ISOLATED = """
import json, os, posix, signal, sys
sys.path.insert(0, {path!r})
from tailhook.pool.serve import load_hook_modules
load_hook_modules()
from tailhook.hook.process import run_hook
from tailhook.stores.atomic import forget_folder

def content(name, value):
    # All that is in this package's containers must stay the same.
    is_container = isinstance(value, (list, dict, set, bytearray))
    return id(value), repr(value) if is_container and name.startswith("tailhook") else 0

def states():
    found = {{
        (name, key): content(name, value)
        for name, module in list(sys.modules.items())
        for key, value in list(vars(module).items())
        if not key.startswith("__") and name != "__main__" and (name, key) != ("posix", "environ")
    }}
    for number in signal.valid_signals():
        found["signal", number] = id(signal.getsignal(number))
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        found["timer", timer] = signal.getitimer(timer)
    return found

modules, before = set(sys.modules), states()
requests = json.loads(sys.stdin.read())
for words, payload, env in requests:
    read, write = posix.pipe()
    posix.write(write, json.dumps(payload).encode())
    posix.close(write)
    posix.dup2(read, 0)
    posix.close(read)
    posix.environ = {{name.encode(): value.encode() for name, value in env.items()}}
    run_hook(words, 1)
    forget_folder()
posix.write(2, json.dumps([sorted(map(str, set(states().items()) ^ set(before.items()))),
                           sorted(set(sys.modules) - modules)]).encode())
"""


def project_with_states(folder):
    """Return a project with something to decide for each machine."""
    folder.mkdir()
    project = Project(folder / "project", folder / "home", [])
    project.loop()
    project.ralph()
    project.triage(pipeline("triage", entry(status="pending")))
    rules = {"gate": {"rules": [{"edited": ["*.py"], "ran": "make test"}]}}
    (project.folder / ".claude" / "tailhook.json").write_text(json.dumps(rules))
    edit = {"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": str(project.folder / "a.py")}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": ""}
    project.write(
        {"type": "assistant", "message": {"role": "assistant", "id": "m", "content": [edit]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
        assistant(MEMORABLE),
    )
    project.env |= {"TAILHOOK_LOG": str(folder / "log")}
    return project


def test_a_request_leaves_nothing_in_the_modules(tmp_path):
    own = project_with_states(tmp_path / "claude-code")
    requests = [[[machine], own.payload(), own.env] for machine in MACHINES]
    for host, payload in BY_HOST.items():
        project = project_with_states(tmp_path / host)
        if host == "gemini":
            write(project, {"type": "gemini", "content": MEMORABLE, "timestamp": stamp()})
        elif host == "codex":
            content = [{"type": "output_text", "text": MEMORABLE}]
            message = {"type": "message", "role": "assistant", "content": content}
            write(project, {"timestamp": stamp(), "type": "response_item", "payload": message})
        stop = {
            "cwd": str(project.folder),  # Devin has it in a variable
            **payload(project, MEMORABLE),
            **({"transcript_path": str(project.home / "host.jsonl")} if host == "codex" else {}),
        }
        requests += [[["--host", host, machine], stop, project.env] for machine in MACHINES]
    compaction = own.payload(hook_event_name="SessionStart", source="compact")
    tool_input = {"command": "x --password=hunter2"}
    tool = own.payload(hook_event_name="PreToolUse", tool_name="Bash", tool_input=tool_input)
    requests += [[[], compaction, own.env], [["plates"], tool, own.env], [["--nonsense", "idle"], None, own.env]]
    code = ISOLATED.format(path=os.path.dirname(os.path.dirname(sys.modules["tailhook"].__file__)))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        check=False,
    )
    changed, loaded = json.loads(done.stderr.splitlines()[-1])
    assert changed == []
    assert loaded == []
    decided = {
        path.parent.name: [tuple(line.split("\t")[1:3]) for line in path.read_text().splitlines()]
        for path in tmp_path.glob("*/log")
    }
    blocked, memory = [(machine, "block") for machine in ("idle", "ralph", "triage")], ("memory", "block")
    assert decided == {
        "claude-code": [*blocked, ("gate", "block"), memory],
        **{host: [*blocked, ("gate", "allow"), memory] for host in BY_HOST},  # their transcripts hold no edit here
        "devin": [*blocked, ("gate", "allow"), ("memory", "allow")],  # its payloads name no transcript
    }


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif(bool(SANITIZER), reason="a sanitizer may have a thread of its own")
def test_the_import_of_what_a_pool_loads_starts_no_thread():
    """A fork copies only the calling thread, with the locks that others hold."""
    package = os.path.dirname(sys.modules["tailhook"].__file__)
    modules = sorted(name[:-3] for name in os.listdir(f"{package}/pool") if name.endswith(".py") and name != "entry.py")
    code = (
        f"import os, sys; sys.path.insert(0, {os.path.dirname(package)!r})\n"
        f"for name in {modules}: __import__(f'tailhook.pool.{{name}}')\n"
        "from tailhook.pool.serve import load_hook_modules; load_hook_modules()\n"
        "print(os.listdir('/proc/self/task') == [str(os.getpid())])"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_the_posix_environment_is_what_the_hooks_read():
    """A worker replaces it; the C library's own environment stays."""
    assert isinstance(posix.environ, dict)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_whose_name_is_not_utf_8_is_running():
    script = r"open('/proc/self/comm', 'wb').write(b'caf\xe9'); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as process:
        process.stdout.readline()
        assert is_running(process.pid)
        process.stdin.close()
    assert not is_running(process.pid)
