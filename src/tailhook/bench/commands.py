"""Users' hook commands: run like by a host, and checked for an answer."""

import re
import shlex
import shutil
import sys
from pathlib import Path
from threading import Timer

from tailhook.bench.cases import BenchProject
from tailhook.bench.processes import run_once
from tailhook.errors import TailhookError
from tailhook.hook.answer import plain

SHELL = "/bin/sh"
SHELL_SYNTAX = re.compile(r"[$`\n;&|<>()*?\[\]{}~!#]")
NOTICE_S = 5.0  # until a line names the awaited run
MAX_OUTPUT_CHARS = 64 << 10  # read from a hook's output
# Exit code 2 has other meanings than "block". Claude Code (2.1.329) takes it for a missing script if stdout is empty
# and stderr has one of the first two phrases. The others come from sh, and from programs that print their usage, with
# options in brackets: Python after its complaint, programs with argparse also after a warning of two lines.
NOT_AN_ANSWER = re.compile(
    r"no such file|can't open|\A\S*sh: (?:.*\n)?.*syntax error|\A(?:.*\n){0,2}usage: .*\[", re.IGNORECASE
)


class NoAnswerError(TailhookError):
    """A command does not answer like a hook."""


def command_argv(command: str) -> list[str]:
    """Return the argv of a hook command. Raises ValueError for a quotation that does not end.

    A host runs a command by `sh -c`. This does the same, but only if the command needs a shell: otherwise the start of
    a shell would be measured.
    """
    words = shlex.split(command)
    if SHELL_SYNTAX.search(command) or "=" in words[0] or shutil.which(words[0]) is None:
        return [SHELL, "-c", command]
    return words


def check_first_run(argv: list[str], project: BenchProject) -> float:
    """Run a hook once, and keep its output. Return its time in milliseconds.

    Prints a line on stderr if it takes longer than NOTICE_S.

    Raises NoAnswerError if its exit code is not 0 or 2, or if it is 2 without a block; OSError; and HookTimeoutError.
    """
    paths = [project.folder.with_name(f"first-run.{name}") for name in ("stdout", "stderr")]
    project.reset()
    waits = f"a first run with {project.case.event}, {project.size}, has not ended; it has {project.limit_s:g} s"
    notice = Timer(NOTICE_S, sys.stderr.write, [f"tailhook: {plain(shlex.join(argv))}: {waits}\n"])
    notice.start()
    try:
        done = run_once(argv, project.payload, project.env, project.limit_s, *map(str, paths))
    finally:
        notice.cancel()
    code = done.exit_code
    stdout, stderr = map(read_first_chars, paths)
    if code == 0 or (code == 2 and (stdout or (stderr and not NOT_AN_ANSWER.search(stderr)))):
        return done.wall
    about = (
        "ended with exit code 2, which is not an answer" if code == 2 else f"ended with exit code {code}, not 0 or 2"
    )
    reason = stderr.partition("\n")[0] or ("it printed no reason" if code == 2 else "")
    raise NoAnswerError(
        f"{shlex.join(argv)}: a first run with {project.case.event} {about}{': ' if reason else ''}{reason}"
    )


def read_first_chars(path: Path) -> str:
    """Return the beginning of a file, without blank space around it."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(MAX_OUTPUT_CHARS).strip()
