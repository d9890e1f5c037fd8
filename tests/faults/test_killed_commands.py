"""A command killed at any moment leaves the old state or the new one, and the same command again completes it.

A killed command leaves the disk as it was before one of its system calls. So each command is killed at the first call
after each change of a file or a folder. `make faults` takes all changes; the suite takes the commonest cases and every
fourth change.
"""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from support.host import PROMPT, ralph_page
from support.oracles import jwz
from support.ptrace import run_until

EVERY = os.environ.get("TAILHOOK_FAULTS") == "1"
THEIRS = '{\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make stop"}]}]}\n}\n'
SETTINGS = "home/.claude/settings.json"
RALPH = "project/.claude/ralph-loop.local.md"
FALLBACK = "project/.claude/idle-loop.local.md"
STORE = "project/.jwz"
FILE_LOOP = f"---\nactive: true\niteration: 3\nmax_iterations: 10\n---\n{PROMPT}\n"


class Case(NamedTuple):
    """A command, the state before it, and the result if the command's work was done before.

    command: its words.
    state: the path that it changes.
    file: the text of that file before, None if it is missing.
    before: the words of a command that runs before.
    again: the exit code and the words of the command if it runs a second time, None if it does something else then.
    between: the states on the way to the new one.
    undo: the words of a command that restores the first state.
    """

    command: tuple[str, ...]
    state: str
    file: str | None = None
    before: tuple[str, ...] = ()
    again: tuple[int, str] | None = (0, "Nothing to ")
    between: tuple = ()
    undo: tuple[str, ...] = ()


INSTALL, UNINSTALL = ("install", "--yes"), ("uninstall", "--yes")
LOOP, RALPH_LOOP = ("loop", "start", PROMPT), ("ralph", "start", PROMPT)
RUNS, NONE = (1, "running already"), (1, "no loop is running in this project")
CASES = {
    "install": Case(INSTALL, SETTINGS, THEIRS, undo=UNINSTALL),
    "loop start": Case(LOOP, STORE, again=RUNS),
    "ralph start": Case(RALPH_LOOP, RALPH, again=RUNS),
    "install into an empty home": Case(INSTALL, SETTINGS, undo=UNINSTALL),
    "install once more": Case((*INSTALL, "--with", "memory"), SETTINGS, THEIRS, before=INSTALL, undo=UNINSTALL),
    "uninstall": Case(UNINSTALL, SETTINGS, THEIRS, before=INSTALL),
    "uninstall what was all ours": Case(UNINSTALL, SETTINGS, before=INSTALL),
    "loop start in a loop": Case((*LOOP, "--push"), STORE, before=LOOP, again=None),
    "loop start in place of another": Case(
        (*LOOP, "--replace"),
        STORE,
        before=(*LOOP, "--max", "3"),
        again=(0, "Loop started"),
        between=(("ABORT", "REPLACED", []),),
    ),
    "loop cancel": Case(("loop", "cancel"), STORE, before=LOOP, again=NONE),
    "loop cancel without a store": Case(("loop", "cancel"), FALLBACK, FILE_LOOP, again=NONE),
    "ralph start in place of another": Case(
        (*RALPH_LOOP, "--force"), RALPH, ralph_page("Another."), again=(0, "Ralph loop started")
    ),
    "ralph adopt": Case(("ralph", "adopt"), RALPH, ralph_page(session_id="mine"), again=(0, "now belongs to")),
    "ralph cancel": Case(
        ("ralph", "cancel"), RALPH, ralph_page(), again=(1, "no ralph loop is running in this project")
    ),
}


class Scene:
    """A project and a home that can be put back as they were before the command."""

    def __init__(self, project, case):
        self.project = project
        self.case = case
        self.root = project.folder.parent
        self.file = self.root / case.state
        if case.file is not None:
            self.file.parent.mkdir(exist_ok=True)
            self.file.write_text(case.file)
        if case.before:
            assert project.tailhook(*case.before).returncode == 0
        self.copies = [(folder, self.root / f"{folder.name} before") for folder in (project.folder, project.home)]
        for folder, copy in self.copies:
            shutil.copytree(folder, copy)

    def reset(self):
        """Undo the command."""
        for folder, copy in self.copies:
            shutil.rmtree(folder)
            shutil.copytree(copy, folder)

    def disk(self):
        """Yield each file's and folder's path, number, size and mode."""
        for folder, _ in self.copies:
            for path, folders, files in os.walk(folder):
                for name in (*folders, *files):
                    facts = os.lstat(f"{path}/{name}")
                    yield path, name, facts.st_ino, facts.st_size * (name in files), facts.st_mode

    def names(self):
        """Yield every file and folder, without the drafts and the prompts that a killed command leaves.

        The name of a lock and of an end has the inode of a folder, which `reset` makes again.
        """
        for folder, _ in self.copies:
            for path in folder.rglob("*"):
                if path.suffix != ".tmp" and path.parent.name != "prompts":
                    yield re.sub(
                        r"-[0-9a-f]+-[0-9a-f]+-([0-9a-f]{16}\.(?:lock|end))$", r"-\1", str(path.relative_to(self.root))
                    )

    def run(self, change=None):
        """Run the command, killed after its n-th change of the disk; return how many changes there were."""
        seen, changes = set(self.disk()), 0

        def is_last(_):
            nonlocal seen, changes
            now = set(self.disk())
            changes += now != seen
            seen = now
            return changes == change

        argv = [sys.executable, "-m", "tailhook", *self.case.command]
        code, _ = run_until(argv, self.project.env, str(self.project.folder), os.devnull, is_last)
        assert code == (0 if change is None else -9)
        return changes

    def state(self):
        """Return the state as a reader sees it, or None, without the times and ids that differ from run to run."""
        if self.file.is_file():
            return re.sub(r"\n(?:started_at|began): .*", "", self.file.read_text())
        messages = self.file / "messages.jsonl"
        body = jwz.newest(self.project.folder) if messages.exists() and messages.read_bytes() else None
        if body is None:
            return None
        frames = [(frame["max"], Path(frame["prompt_file"]).read_text()) for frame in body["stack"]]
        return body["event"], body.get("reason"), frames


@pytest.mark.parametrize("name", CASES if EVERY else list(CASES)[:3])
def test_killed_at_any_change_the_state_is_the_old_one_or_the_new_and_the_command_completes_it(project, report, name):
    case = CASES[name]
    scene = Scene(project, case)
    old = scene.state()
    changes = scene.run()
    new = scene.state()
    names = set(scene.names())
    stages = [old, *case.between, new]
    seen = []
    for change in range(changes + 1) if EVERY else range(changes % 4, changes + 1, 4):
        scene.reset()
        scene.run(change)
        state = scene.state()
        assert state in stages, f"killed after change {change} of {changes}"
        seen.append(stages.index(state))
        if state != new or case.again:
            done = project.tailhook(*case.command)
            code, words = case.again if state == new else (0, "")
            assert (done.returncode, words in done.stdout + done.stderr) == (code, True), done.stderr
            assert scene.state() == new
            assert set(scene.names()) == names, f"killed after change {change} of {changes}"
        if case.undo:
            assert project.tailhook(*case.undo).returncode == 0
            assert (scene.file.read_text() if scene.file.exists() else None) == case.file
    assert seen == sorted(seen), "once new, always new"
    assert set(seen) == set(range(len(stages)))
    report(f"faults: {name} killed {len(seen)} times in its {changes} changes of the disk, no state lost or torn")


@pytest.mark.parametrize("after", [INSTALL, UNINSTALL], ids=["install", "uninstall"])
def test_the_draft_of_a_killed_install_is_gone_after_the_next_command(project, after):
    settings = project.home / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(THEIRS)
    others = settings.with_name(f"settings.json.{os.getpid()}.tmp")  # of a live process
    others.write_text("theirs")

    def drafts():
        return set(settings.parent.glob("settings.json.*.tmp")) - {others}

    argv = [sys.executable, "-m", "tailhook", *INSTALL]
    code, _ = run_until(argv, project.env, str(project.folder), os.devnull, lambda _: bool(drafts()))
    assert code == -9
    assert drafts()
    assert project.tailhook(*after).returncode == 0
    assert drafts() == set()
    assert others.read_text() == "theirs"
