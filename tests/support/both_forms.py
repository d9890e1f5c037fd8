"""Runs a hook in both forms on the same files, and checks that answers and files are equal."""

import contextlib
import difflib
import os
import re
import shlex
import shutil
import stat
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from support.pool import Pool

MAX_KEPT_BYTES = 4 << 20  # of a file; hooks change no larger one
# In place of the interpreter: it notes that the client would have started the cold hook. It starts no pool.
NOTES_COLD_HOOK = """#!/bin/sh
case "$*" in *"$0"*) : > "$0.ran" ;; esac
"""
WARM_ATTEMPTS = 400  # on a busy computer a worker may not be ready in time
PAUSE_S = 0.02
# What may differ between two runs: the inode of a folder that a hook made, random ids, times, ages, and durations.
VARIES = re.compile(
    rb"-[0-9a-f]+-[0-9a-f]+-[0-9a-f]{16}|[0-9a-f]{12,}|[0-9A-HJKMNP-TV-Z]{26}"
    rb"|\d{4}-\d\d-\d\dT[\d:.]+|\d{9,}(?:\.\d+)?|\t\d+\.\d$|(?<=mono.:)\d+"
    rb"|\d+(?= seconds old)|(?<=changed it for )\d+|\d+(?= of \d+ minute)",
    re.MULTILINE,
)

Done = subprocess.CompletedProcess[bytes]


class Forms:
    """The forms of one hook.

    cold: the argv of the cold form, without the machines.
    warm: the argv of the warm form, without the machines. It starts the cold one if no worker answers.
    warm_only: the same with a client that notes each start of the cold form in the file `cold_start`.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.cold = pool.cold
        self.warm = pool.argv
        strict = pool.folder.with_name("warm-only")
        strict.mkdir(mode=0o700)
        self.warm_only = [str(shutil.copy2(pool.argv[0], strict)), *pool.argv[1:]]
        self.interpreter = strict / "notes-cold-hook"
        self.interpreter.write_text(NOTES_COLD_HOOK)
        self.interpreter.chmod(0o700)
        self.cold_start = strict / f"{self.interpreter.name}.ran"
        self.name_pool()

    def name_pool(self) -> None:
        """Write the file that leads the client without a cold form to the pool."""
        fields = (self.pool.folder / "installation").read_bytes().split(b"\0")
        fields[2] = fields[3] = os.fsencode(self.interpreter)
        fields[4] = b"/no/pool"
        Path(self.warm_only[0]).with_name("installation").write_bytes(b"\0".join(fields))

    def run(self, argv: Sequence[str], folders: Iterable[Path], run: Callable[[list[str]], Done]) -> Done:
        """Run a hook cold, put the files back, and run it warm; return the warm one's result.

        argv: with the warm form in it.
        folders: where the hook may change files.
        """
        folders = [folder for folder in folders if folder.is_dir()]
        before = read_files(folders)
        cold = run(self.in_form(argv, self.cold))
        after_cold = read_files(folders)
        put_back(folders, before, after_cold)
        warm = self.run_warm(argv, run)
        assert outcome(warm) == outcome(cold), "stdout, stderr or the exit code of the warm hook differ"
        changes = list(difflib.unified_diff(lines_of(after_cold), lines_of(read_files(folders)), "cold", "warm", n=1))
        assert not changes, "the warm hook leaves other files\n" + "\n".join(changes)
        return warm

    def run_warm(self, argv: Sequence[str], run: Callable[[list[str]], Done]) -> Done:
        """Run the warm form until a worker answers. If the pool has ended or leaves, show why and start another."""
        for _ in range(WARM_ATTEMPTS):
            done = run(self.in_form(argv, self.warm_only))
            if not self.cold_start.exists():
                return done
            self.cold_start.unlink()
            if self.pool.finds_socket():  # perhaps another one: a client that a test ran has started it
                time.sleep(PAUSE_S)
            else:
                code = self.pool.process and self.pool.process.poll()  # None: its workers still end their requests
                warnings.warn(f"the pool has ended with {code}: {self.pool.end() or 'it wrote nothing'}", stacklevel=1)
                self.pool.serve()
                self.name_pool()
        found = "the pool runs" if self.pool.finds_socket() else "nothing listens for the pool"
        raise AssertionError(f"no worker answers, {found}: a hook that is always cold has the marker `one_form`")

    def in_form(self, argv: Sequence[str], form: Sequence[str]) -> list[str]:
        """Return an argv with another form in place of the warm one, also in a shell's script."""
        words = list(argv)
        if self.warm[0] in words:
            at = words.index(self.warm[0])
            words[at : at + len(self.warm)] = form
        return [word.replace(shlex.join(self.warm), shlex.join(form)) for word in words]


def outcome(done: Done) -> tuple[int, bytes, bytes]:
    """Return a hook's answer to the host."""
    return done.returncode, VARIES.sub(b"#", done.stdout), VARIES.sub(b"#", done.stderr)


# ---- files -----------------------------------------------------------------------


class Entry(NamedTuple):
    """A file, a folder, or a link.

    content: of a file, None for a large one; the target of a link.
    times: of the last access and change, in nanoseconds.
    """

    mode: int
    content: bytes | None
    times: tuple[int, int]


def read_files(folders: Iterable[Path]) -> dict[str, Entry]:
    """Return all that is below some folders, by path; a folder comes before what is in it."""
    found: dict[str, Entry] = {}
    waiting = [os.fspath(folder) for folder in folders]
    while waiting:
        path = waiting.pop()
        with contextlib.suppress(OSError):
            facts = os.lstat(path)
            content: bytes | None = None
            if stat.S_ISREG(facts.st_mode) and facts.st_size <= MAX_KEPT_BYTES:
                content = Path(path).read_bytes()
            elif stat.S_ISLNK(facts.st_mode):
                content = os.fsencode(os.readlink(path))
            found[path] = Entry(facts.st_mode, content, (facts.st_atime_ns, facts.st_mtime_ns))
            if stat.S_ISDIR(facts.st_mode):
                waiting += [f"{path}/{name}" for name in os.listdir(path)]
    return found


def put_back(folders: Iterable[Path], before: dict[str, Entry], after: dict[str, Entry]) -> None:
    """Put files back as they were. Folders and files that are still there keep their inodes."""
    for path in sorted(after.keys() - before.keys(), reverse=True):
        (os.rmdir if stat.S_ISDIR(after[path].mode) else os.unlink)(path)
    for path, entry in before.items():
        now = after.get(path)
        if now is not None and stat.S_IFMT(now.mode) != stat.S_IFMT(entry.mode):
            os.unlink(path)
            now = None
        if now is None and stat.S_ISDIR(entry.mode):
            os.mkdir(path)
        elif now is None and stat.S_ISLNK(entry.mode):
            os.symlink(entry.content or b"", path)
        elif stat.S_ISREG(entry.mode) and entry.content is not None and (now is None or now.content != entry.content):
            Path(path).write_bytes(entry.content)
        if (now is None or now.mode != entry.mode) and not stat.S_ISLNK(entry.mode):
            os.chmod(path, stat.S_IMODE(entry.mode))
    for path, entry in reversed(before.items()):
        if not stat.S_ISLNK(entry.mode):
            os.utime(path, ns=entry.times)
    assert comparable(read_files(folders)) == comparable(before)


def lines_of(files: dict[str, Entry]) -> list[str]:
    """Return `comparable` as lines, for the message of a failed test."""
    return [repr(line) for name, mode, content in comparable(files) for line in (name, mode, *(content or b"").split())]


def comparable(files: dict[str, Entry]) -> list[tuple[bytes, int, bytes | None]]:
    """Return the names, modes and contents of files without what varies between two runs."""
    return sorted(
        (VARIES.sub(b"#", os.fsencode(path)), entry.mode, entry.content and VARIES.sub(b"#", entry.content))
        for path, entry in files.items()
    )
