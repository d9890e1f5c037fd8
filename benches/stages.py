"""What each stage of a scan costs. Each question does the work of the one before it and one thing more.

The difference of their times is the cost of this thing. All read the same bytes with the same literal. They are
measured in processor time, and in turns, because the speed of a computer changes from minute to minute. They call the
core, because `tailhook.scan` cannot find lines without reading them.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tailhook
from tailhook._core import RangeScan, ScanProgram, scan_range
from tailhook.fleet.columns import LARGE, TABLE_COLUMNS, MatchOptions
from tailhook.fleet.plan import TASK_BYTES
from tailhook.fleet.program import ESCAPED_ASCII, KNOWN_TYPES, make_gate
from tailhook.patterns.automaton import compile_table
from tailhook.patterns.sets import PatternSet

BLOCK_BYTES = 1 << 18  # that a scan reads at a time
ROUNDS = 7
# A literal with this behind it is in no transcript. These letters are so common that the prefilter looks for the same
# four bytes as without them.
NOWHERE = "e e e e e"
NO_ROLE = ("a role that no record has",)


class Stage(NamedTuple):
    """A question, and the one thing that it does more than the question before it.

    run: takes the folder of transcripts and its copy without records (see `copy_without_records`); returns how many
        records were read, and how many rows were given.
    """

    name: str
    adds: str
    run: Callable[[Path, Path], tuple[int, int]]


def literal_stages(*literals: str) -> list[Stage]:
    """Return the stages of the search for literals in own words, outside code.

    If a literal has less than four letters, the prefilter passes more places than in the stage of its name.
    """
    wanted = PatternSet(literals)
    gate = make_gate([wanted])
    missing = [(0, text + NOWHERE) for text in sorted({*literals, *ESCAPED_ASCII})]
    shut = compile_table(missing, ignore_case=False, word=False)
    elsewhere = PatternSet({literal: literal + NOWHERE for literal in literals})

    def ask(sets: Sequence[PatternSet] = (), gate: bytes | None = gate, columns: Sequence[str] = (), **options: Any):
        compiled = [(one._automaton.data, False, 0, len(literals)) for one in sets]
        options.setdefault("options", MatchOptions(context=0))
        return core_scan("matches", columns, gate=gate, sets=compiled, names=literals, **options)

    return [
        Stage("read", "the bytes are copied out of the page cache, 256 KiB at a time", read),
        Stage("prefilter", "they are searched for the literal and for escapes, and nothing is found", ask(gate=shut)),
        Stage("bounds", "what is found is looked at, and the ends of its line are found", in_copy(ask())),
        Stage("skip", "the line is walked as JSON: type, role, flags, and where the text is", ask(roles=NO_ROLE)),
        Stage("unescape", "own text is written without its escapes", ask()),
        Stage("search", "own text is searched, for what is not in it", ask([elsewhere])),
        Stage("code map", "a text with a match is divided into code and prose; rows have no columns", ask([wanted])),
        Stage(
            "append", "rows have all columns", ask([wanted], columns=TABLE_COLUMNS["matches"], options=MatchOptions())
        ),
        Stage("the whole scan", "files are listed and recognised, rows go through a queue", whole(patterns=literals)),
    ]


def record_stages() -> list[Stage]:
    """Return the stages of the table of records, all columns but text."""
    every = tuple(name for name in TABLE_COLUMNS["records"] if name not in LARGE)
    return [
        Stage("read", "the bytes are copied out of the page cache, 256 KiB at a time", read),
        Stage("bounds", "the ends of each line are found", in_copy(core_scan("records", ()))),
        Stage(
            "skip",
            "the line is walked as JSON: members, and where the text is",
            core_scan("records", (), roles=NO_ROLE),
        ),
        Stage("append of one column", "each record is a row with its offset", core_scan("records", ("offset",))),
        Stage("append", "rows have all columns but text", core_scan("records", every)),
        Stage("the whole scan", "files are listed and recognised, rows go through a queue", whole(table="records")),
    ]


# ---- the questions -------------------------------------------------------------


def read(folder: Path, copy: Path) -> tuple[int, int]:  # noqa: ARG001 - as the others
    """Read all files into one buffer, in blocks as a scan does."""
    buffer = bytearray(BLOCK_BYTES)
    for path in os.scandir(folder):
        fd = os.open(path, os.O_RDONLY)
        offset = 0
        while size := os.preadv(fd, [buffer], offset):
            offset += size
        os.close(fd)
    return 0, 0


def core_scan(table: str, columns: Sequence[str], **options: Any) -> Callable[[Path, Path], tuple[int, int]]:
    """Return a function that scans all files of a folder in the core, one after another, and drops the rows."""
    program = ScanProgram(table=table, columns=columns, known_types=KNOWN_TYPES, **options)

    def run(folder: Path, copy: Path) -> tuple[int, int]:  # noqa: ARG001 - as the others
        rows = size = 0
        scan = RangeScan(program)
        for path in os.scandir(folder):
            fd = os.open(path, os.O_RDONLY)
            scan_range(fd, 0, None, program, path=path.path, session_id=path.name, into=scan)
            size += os.fstat(fd).st_size
            os.close(fd)
            if size > TASK_BYTES:
                rows += sum(map(len, scan.finish()))
                size = 0
        rows += sum(map(len, scan.finish()))
        return scan.counts["records"], rows

    return run


def in_copy(run: Callable[[Path, Path], tuple[int, int]]) -> Callable[[Path, Path], tuple[int, int]]:
    """Return the same question for the copy without records."""
    return lambda folder, copy: run(copy, folder)


def whole(**question: Any) -> Callable[[Path, Path], tuple[int, int]]:
    """Return the question as a program asks it."""

    def run(folder: Path, copy: Path) -> tuple[int, int]:  # noqa: ARG001 - as the others
        scan = tailhook.scan(folder, workers=1, **question)
        rows = sum(map(len, scan))
        return scan.report.records, rows

    return run


def copy_without_records(folder: Path, copy: Path) -> None:
    """Copy transcripts, with an x for the first and for the last byte of each line.

    The core finds the same line ends, and leaves each line at its first byte, because it is not a record.
    """
    copy.mkdir()
    for path in folder.iterdir():
        lines = path.read_bytes().split(b"\n")
        (copy / path.name).write_bytes(b"\n".join(b"x%bx" % line[1:-1] if len(line) > 1 else line for line in lines))


# ---- the measurement -----------------------------------------------------------


def measure_in_turns(
    runs: Sequence[Callable[[], object]], rounds: int = ROUNDS, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Return the seconds of each function: the least of all rounds. In each round every function is run once."""
    seconds = [float("inf")] * len(runs)
    for _ in range(rounds):
        for number, run in enumerate(runs):
            started = clock()
            run()
            seconds[number] = min(seconds[number], clock() - started)
    return seconds


def breakdown(stages: Sequence[Stage], seconds: Sequence[float]) -> list[list[str]]:
    """Return the rows of a table, its head first: each stage in its order, with what it adds to the one before it."""
    rows = [["stage", "time so far", "this stage", "of the whole", "what it adds"]]
    before = 0.0
    digits = 0 if seconds[-1] >= 0.1 else 1
    for stage, taken in zip(stages, seconds, strict=True):
        share = (taken - before) / seconds[-1]
        times = [f"{taken * 1e3:.{digits}f} ms", f"{(taken - before) * 1e3:.{digits}f} ms", f"{share:.0%}"]
        rows.append([stage.name, *times, stage.adds])
        before = taken
    return rows
