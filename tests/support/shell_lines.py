"""Shell lines that may run a command `check`, and the meaning of their exit codes in bash."""

import subprocess

from support.host import HANGS_S

PROGRAMS = {
    # Each run of `check` is written to $LOG; it fails if its number, or "all", is in $FAIL.
    "check": 'n=$(wc -l <"$LOG"); echo check >>"$LOG"; case " $FAIL " in *" $((n)) "*|*" all "*) exit 1;; esac',
    "other": 'exit "$OTHER"',
}
TOOLS = ("bash", "cat", "env", "nice", "sh", "tail", "timeout", "wc", "xargs", "nohup", "sleep")
MAX_RUNS = 3  # of `check`; each one fails once


class BashOracle:
    """Runs lines in bash, with every command failing and succeeding."""

    def __init__(self, folder):
        """folder: an empty one, for programs and the log."""
        self.folder = folder
        self.log = folder / "log"
        programs = folder / "bin"
        programs.mkdir()
        for name, text in PROGRAMS.items():
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        for name in TOOLS:
            (programs / name).symlink_to(f"/usr/bin/{name}")

    def run(self, line, fail, other):
        """Return a line's exit code, and how often `check` ran."""
        self.log.write_text("")
        done = subprocess.run(
            ["/bin/bash", "-c", line],
            cwd=self.folder,
            env={"PATH": str(self.folder / "bin"), "LOG": str(self.log), "FAIL": fail, "OTHER": other},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HANGS_S,
            check=False,
        )
        assert b"syntax error" not in done.stderr, line
        return done.returncode, len(self.log.read_text().splitlines())

    def label(self, line):
        """Return "absent" if the line never runs `check`, "run" if its exit code 0 means that `check` ran and did not
        fail, otherwise "hidden".
        """
        ever_ran, is_hidden = False, False
        for other in "01":
            code, count = self.run(line, "", other)
            ever_ran = ever_ran or count > 0
            is_hidden = is_hidden or (code == 0 and count == 0)
            for fail in ["all", *map(str, range(min(count, MAX_RUNS)))] if count else ():
                code, count = self.run(line, fail, other)
                is_hidden = is_hidden or (code == 0 and count > 0)
        return "absent" if not ever_ran else "hidden" if is_hidden else "run"


ATOMS = ["check", "check", "check -q", "other", "true", "false", "echo check", "x=1", "timeout 9 check", "! check"]
SHAPES = [
    "{}; {}", "{}\n{}", "{} && {}", "{} && {}", "{} || {}", "{} | {}", "{} | cat", "{} | tail -3", "({})", "{{ {}; }}",
    "if {}; then {}; fi", "if {}; then {}; else {}; fi", "for i in 1 2; do {}; done", "for i in $N; do {}; done",
    "case a in a) {} ;; *) {} ;; esac", "f() {{ {}; }}; f", "x=$({})", "echo $({})", "{} &\nwait", "{} || exit 1",
    "{} || {{ other; exit 1; }}", "{}; exit $?", "{}; code=$?; {}; exit $code", "set -e; {}; {}",
    "set -o pipefail; {} | {}", "set -euo pipefail\n{}\n{}", "bash -c '{}; {}'", "bash -ec '{}; {}'",
    "bash -o pipefail -c '{} | tail -1'", "while {}; do {}; break; done", "until {}; do {}; exit 1; done", "eval '{}'",
    "({}) || (exit 3)", "{} && exit 0; {}", "! {{ {}; }}", "{} > log2 2>&1", "({} | cat) && {}", "{} & true",
    "nice {}", "f() {{ {} || return 1; {}; }}; f && {}", "time {}", "cat <({})", "{} <<E\nx\nE\n{}", "exec {}",
]  # fmt: skip


def make_line(random, depth):
    """Return a line that may run `check`. depth: of shapes in each other."""
    if depth == 0:
        return random.choice(ATOMS)
    shape = random.choice(SHAPES)
    parts = []
    for _ in range(shape.replace("{{", "").count("{}")):
        part = make_line(random, random.randrange(depth))
        is_hard = ("'" in shape and "'" in part) or "<<" in part or part.startswith("!") or "\n" in part or "&" in part
        parts.append(random.choice(ATOMS[:9]) if is_hard else part)
    return shape.format(*parts)
