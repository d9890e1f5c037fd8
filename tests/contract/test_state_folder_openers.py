"""The state folder and the folder of the sockets are opened only after one function has found them safe.

The native client (ext/client) does not check: it opens only the files beside its own, which `tailhook install` wrote
after the check.
"""

import ast
import json
import sys
from functools import cache
from pathlib import Path

import pytest
from support.daemon import daemon_in
from support.host import MEMORABLE, PROMPT, assistant, run_on_payload, wait_until

import tailhook

PACKAGE = Path(tailhook.__file__).parent
CHECK = "check_folder"  # of stores/atomic.py

# ---- in the source: one function computes each path --------------------------------

# The functions with the name of a variable from which the folders' paths are computed.
MAY_NAME_A_FOLDER = {
    ("stores/atomic.py", "state_folder_path"): "checks the folder before it returns the path",
    ("stores/spool.py", "runtime_folder"): "its callers check the folder, see below",
    ("cli/pool.py", ""): "lists the variables that a pool keeps",
    ("cli/uninstall.py", "use_state_of_installed"): "checks the folder before it sets the variable",
    ("install/settings.py", "remove_empty_folders"): "asks only whether the variable is set",
    ("cli/bench.py", "commands_in"): "sets the variable for a temporary home",
}
# The functions that get the path of the sockets' folder, and open nothing there without a check.
OPENS_NO_SOCKET = {
    ("stores/spool.py", "wake_daemon"): "sends an empty datagram, and gets nothing back",
    ("install/client.py", "remove_clients"): "removes folders that are empty",
    ("plates/serve.py", "is_reachable"): "compares the path with the one that was checked at the start",
    ("doctor/daemon.py", "check_private_files"): "reports the owner and the mode of each file",
}


@cache
def named_functions():
    """Return each function of the package, and each module without its functions: its file, its name and its nodes."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        inside = {id(node) for function in functions for node in ast.walk(function)}
        file = str(path.relative_to(PACKAGE))
        found.append((file, "", [node for node in ast.walk(tree) if id(node) not in inside]))
        found += [(file, function.name, list(ast.walk(function))) for function in functions]
    return found


def names_of_calls(nodes):
    """Return the names of the called functions, without those of their modules."""
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    return {getattr(function, "id", "") or getattr(function, "attr", "") for function in functions}


def test_the_paths_of_both_folders_are_computed_by_one_function_each():
    variables = ("XDG_STATE_HOME", b"XDG_STATE_HOME", "XDG_RUNTIME_DIR", b"XDG_RUNTIME_DIR")
    found = {
        (file, name)
        for file, name, nodes in named_functions()
        if any(isinstance(node, ast.Constant) and node.value in variables for node in nodes)
    }
    assert found == MAY_NAME_A_FOLDER.keys()


def test_a_function_with_the_path_of_the_sockets_folder_checks_the_folder():
    callers = {(file, name): names_of_calls(nodes) for file, name, nodes in named_functions()}
    users = {function for function, called in callers.items() if "runtime_folder" in called}
    assert {function for function in users if CHECK not in callers[function]} == OPENS_NO_SOCKET.keys()


# ---- in a process: no file is opened before the check ------------------------------

# Runs at the start of an interpreter. Keeps each opened file of the state folder with the function of the package that
# opened it, and whether this process had found the folder safe.
AUDIT = """
import json, os, sys
from urllib.parse import unquote, urlsplit

EVENTS = dict.fromkeys("open os.listdir os.scandir os.mkdir os.remove os.rename os.chmod os.truncate".split(), 0)
EVENTS |= {"sqlite3.connect": 0, "socket.bind": 1, "socket.connect": 1}
safe = []

def note_checks():
    atomic = sys.modules.get("tailhook.stores.atomic")
    check = getattr(atomic, "folder_fault", None)
    if check is None or hasattr(check, "is_noted"):
        return
    def noted(folder):
        exists, fault = check(folder)
        safe.extend([] if fault else [os.fsdecode(folder)])
        return exists, fault
    noted.is_noted = True
    atomic.folder_fault = noted

def opener():
    frame = sys._getframe(2)
    while frame and not frame.f_globals.get("__name__", "").startswith("tailhook."):
        frame = frame.f_back
    return f"{frame.f_globals['__name__']} {frame.f_code.co_name}" if frame else ""

def keep(event, given):
    note_checks()
    if event not in EVENTS or not isinstance(given[EVENTS[event]], (str, bytes)):
        return
    path = os.fsdecode(given[EVENTS[event]])
    path = unquote(urlsplit(path).path) if path.startswith("file:") else path
    if path.startswith(STATE):
        is_safe = any(f"{path}/".startswith(f"{folder}/") for folder in safe)
        with open(KEPT, "a") as file:
            file.write(json.dumps([event, path, is_safe, opener()]) + "\\n")

sys.addaudithook(keep)
"""


COMMANDS = [
    ("install", "--yes", "--with", "plates"),
    ("loop", "start", "--max", "3", PROMPT),
    ("loop", "status"),
    ("loop", "cancel"),
    ("ralph", "start", PROMPT),
    ("ralph", "cancel"),
    ("plates", "list"),
    ("plates", "list", "--waiting", "--short"),
    ("plates", "waits"),
    ("plates", "link"),
    ("run", "--", "true"),
    ("pool", "status"),
    ("uninstall", "--yes"),
]
# Functions that open files there in this test; others may, too.
OPENERS = {
    "tailhook.cli.short_list request_summary",
    "tailhook.hook.memory remove_old",
    "tailhook.install.settings forget",
    "tailhook.plates.client send",
    "tailhook.plates.inbox open_spool_file",
    "tailhook.plates.serve single_instance",
    "tailhook.plates.sockets bind_unix_socket",
    "tailhook.pool.installation write_installation",
    "tailhook.stores.atomic __enter__",
    "tailhook.stores.atomic read_file",
    "tailhook.stores.atomic replace_pieces",
    "tailhook.stores.spool open_spool",
}


@pytest.fixture
def tmp_path(short_path):
    """Return the folder of the user's home; the paths of sockets are in it."""
    return short_path


def test_no_file_is_opened_before_the_folder_was_found_safe(project, tmp_path):
    state, kept = project.home / ".local" / "state" / "tailhook", tmp_path / "kept"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(f"STATE, KEPT = {str(state)!r}, {str(kept)!r}\n{AUDIT}")
    env = {**project.env, "PYTHONPATH": str(tmp_path / "site")}

    def run(*words, **payload):
        argv = [sys.executable, "-m", "tailhook", *words]
        done = run_on_payload(argv, json.dumps(payload).encode(), env=env, cwd=project.folder, text=True)
        assert done.returncode in (0, 2), done.stderr

    with daemon_in(project.home) as daemon:
        daemon.env, daemon.is_forked = env, False
        daemon.start()
        project.write(assistant(MEMORABLE))
        for event in ("UserPromptSubmit", "PreToolUse", "Stop"):
            tool = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}
            run("hook", "idle", "memory", "gate", "plates", **project.payload(hook_event_name=event, **tool))
        for words in COMMANDS:
            run(*words)
        wait_until(lambda: "mine" in daemon.plates())  # the spool is read
        daemon.stop()
    opened = [json.loads(line) for line in kept.read_text().splitlines()]
    assert {function for *_, function in opened} >= OPENERS
    assert [one for one in opened if not one[2]] == []
