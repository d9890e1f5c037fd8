"""The memory of a hook: little more than the interpreter, and twice the longest line that it reads."""

import json
from pathlib import Path

import pytest
from support.host import SANITIZER, assistant, run_on_payload

pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="a sanitizer keeps memory of its own")

# A small process starts the measured one: a child's peak begins with its parent's.
MEASURE = """
import posix, sys
pid = posix.fork()
if not pid:
    posix.execve(sys.argv[1], sys.argv[1:], posix.environ)
_, status, usage = posix.wait4(pid, 0)
posix.write(2, b"\\n%d" % usage.ru_maxrss)
"""
# A Python that is one file, without libpython, touches more pages of it. All processes share these.
MAX_KIB = 2048 if "libpython" in Path("/proc/self/maps").read_text() else 3072


def peak(project, argv):
    """Return the largest amount of memory, in KiB, that the process had."""
    payload = json.dumps(project.payload()).encode()
    done = run_on_payload([argv[0], "-I", "-S", "-c", MEASURE, *argv], payload, env=project.env, check=True)
    return int(done.stderr.rpartition(b"\n")[2])


def test_a_message_of_a_million_texts_takes_no_more_for_each(project):
    project.argv = [*project.argv[:-1], "memory"]
    project.write({"type": "assistant", "message": {"id": "m", "content": ["x"] * 1_000_000}})
    line = project.transcript.stat().st_size // 1024
    assert peak(project, project.argv) - peak(project, [*project.argv[:3], "-c", "pass"]) <= MAX_KIB + 2 * line


@pytest.mark.parametrize(
    ("words", "count"),
    [("short", 1), ("word `code` word\n", 700_000), ("é 😀 ", 1_000_000), ('"\\\n', 2_000_000)],
    ids=["short", "prose", "emoji", "escapes"],
)
def test_a_hook_takes_2_or_3_mib_and_twice_the_longest_line(project, report, words, count):
    project.loop()
    project.write(assistant(words * count))
    line = project.transcript.stat().st_size // 1024
    bare = peak(project, [*project.argv[:3], "-c", "pass"])
    hook = peak(project, project.argv)
    report(f"memory: a hook on a line of {line:,} KiB takes {hook - bare:,} KiB more than bare Python's {bare:,}")
    assert hook - bare <= MAX_KIB + 2 * line
