"""`tailhook bench`: how long hooks take on this computer, beside programs that do nothing; a gate for CI."""

import argparse
import fnmatch
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tailhook.bench.cases import CASES, COMPARED, EVENT_FIELDS, SIZES, WORKING, Case, Stop, nothing
from tailhook.bench.instructions import CountError, instruction_counter
from tailhook.bench.intervals import FAIL, NOISY
from tailhook.bench.report import BENCH_FORMATS, bench_facts, compare_runs, read_saved, write_as
from tailhook.bench.rounds import (
    Limits,
    Subject,
    count_all_instructions,
    measure_until_clear,
)
from tailhook.bench.warm import NoPoolError, pool_of_bench
from tailhook.cli.output import CommandError, Commands, UsageError, command, counted, positive, print_lines
from tailhook.hook.answer import plain
from tailhook.hook.machines import MACHINES
from tailhook.install.command import hook_command
from tailhook.pool.installation import MAX_SOCKET_BYTES
from tailhook.stores.atomic import replace_file

DEFAULT_ROUNDS = 100
ATTEMPTS = 4  # how often a hook is measured before it is clear whether it is too slow
TOO_NOISY = 3  # the exit code
FOLDER_PREFIX = "tailhook-bench-"  # of the names of temporary folders
SOCKET_BYTES = len("/pool/run/pool/0123456789abcdef.01234567")  # a pool's socket below our folder


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "bench",
        bench,
        "measure how long hooks take on this computer, beside bare Python and /bin/true",
        "tailhook bench --max-ratio 1.35 --format markdown -o hooks.md",
    )
    what = parser.add_argument_group("what is measured")
    what.add_argument("--case", type=filled, metavar="GLOB", help="only cases whose name matches, such as 'idle*'")
    what.add_argument("--machine", choices=[*MACHINES], help="only cases of this machine")
    what.add_argument(
        "--size", choices=[*SIZES], help=f"only transcripts of this size (default: {', '.join(COMPARED)})"
    )
    what.add_argument(
        "--hook", type=command_words, metavar="CMD", help="any hook command, with the usual payloads of an event"
    )
    what.add_argument(
        "--event",
        type=event_names,
        default=["Stop"],
        metavar="NAMES",
        help=f"the events of --hook, separated by commas (default: Stop; known: {', '.join(EVENT_FIELDS)})",
    )
    what.add_argument(
        "--against", type=filled, metavar="ENV", help="a virtual environment with another tailhook, case by case"
    )
    what.add_argument(
        "--against-command", type=command_words, metavar="CMD", help="another hook command, on the same payloads"
    )
    what.add_argument(
        "--rounds", type=positive, default=DEFAULT_ROUNDS, metavar="N", help="runs of each hook (default: 100)"
    )
    gate = parser.add_argument_group("limits; exit code 1 if one is exceeded, 3 if it is too noisy to decide")
    gate.add_argument("--max-ratio", type=limit, metavar="R", help="of the median to that of bare Python")
    gate.add_argument("--max-ms", type=limit, metavar="MS", help="of the median")
    gate.add_argument("--max-p99-ms", type=limit, metavar="MS", help="of the 99th percentile")
    gate.add_argument("--max-instructions", type=limit, metavar="R", help="beside bare Python's")
    output = parser.add_argument_group("what is written")
    output.add_argument(
        "--format", choices=BENCH_FORMATS, default="text", help="bmf: Bencher; github: github-action-benchmark"
    )
    output.add_argument("--json", action="store_true", help="the same as --format json")
    output.add_argument("-o", "--output", type=filled, metavar="FILE", help="write there, not to stdout")
    output.add_argument("--save", type=filled, metavar="FILE", help="keep the figures for --compare")
    output.add_argument("--compare", type=filled, metavar="FILE", help="print what has changed since --save")


def limit(word: str) -> float:
    """Parse a limit: a finite number above 0. Raises ArgumentTypeError."""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number <= 0:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number above 0")
    return number


def filled(word: str) -> str:
    """Parse an argument that is not empty, such as a variable that is not set. Raises ArgumentTypeError."""
    if not word.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return word


def command_words(command: str) -> list[str]:
    """Parse a command as a shell splits it. Raises ArgumentTypeError."""
    try:
        return shlex.split(filled(command))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{command!r}: {error}") from None


def event_names(word: str) -> list[str]:
    """Parse names of events, separated by commas. Raises ArgumentTypeError."""
    names = list(dict.fromkeys(name for name in word.split(",") if name))
    unknown = [name for name in names if name not in EVENT_FIELDS]
    if unknown or not names:
        what = f"unknown event: {', '.join(unknown)}" if unknown else "no event is named"
        raise argparse.ArgumentTypeError(f"{what}. The events are: {', '.join(EVENT_FIELDS)}")
    return names


def bench(arguments: argparse.Namespace) -> int:
    """Run the rounds, write the figures, and judge them: returns 0, 1 or TOO_NOISY."""
    check_arguments(arguments)
    before = read_saved(arguments.compare) if arguments.compare else None
    limits = Limits(arguments.max_ratio, arguments.max_ms, arguments.max_p99_ms, arguments.max_instructions)
    with (
        signals_as_exits(),
        tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder,
        forms_in(Path(folder), arguments) as forms,
    ):
        subjects = list(subjects_in(Path(folder), arguments, forms))
        if not subjects:
            raise UsageError("no case is left: --case, --machine and --size leave nothing")
        count_if_possible(subjects, is_asked=bool(arguments.max_instructions))
        verdicts = measure_until_clear(subjects, arguments.rounds, limits, ATTEMPTS)
        facts = bench_facts([subject for subject in subjects if not subject.unanswered()], limits, verdicts)
    write_figures(arguments, facts, before)
    return judged(subjects, limits, verdicts, facts["load"][0])


@contextmanager
def signals_as_exits() -> Iterator[None]:
    """Let the signals that end a program raise SystemExit instead, so that pools are ended and files removed."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    former = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    ours = [number for number, handler in former.items() if handler == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def check_arguments(arguments: argparse.Namespace) -> None:
    """Raise UsageError for arguments that do not go together."""
    if arguments.against and arguments.against_command:
        raise UsageError("--against and --against-command: give one of them")
    if arguments.hook and (arguments.case or arguments.machine or arguments.against):
        raise UsageError("--hook measures one command: leave out --case, --machine and --against")
    if not arguments.hook and arguments.event != ["Stop"]:
        raise UsageError("--event is for --hook")
    if arguments.max_instructions and not instruction_counter(slow=True):
        raise CommandError(
            "--max-instructions: neither the processor (perf_event_open) nor valgrind counts instructions here. "
            "Install valgrind, or leave the limit out."
        )


# ---- what is measured ------------------------------------------------------------


class Form(NamedTuple):
    """A form in which our own hooks are measured.

    name: "cold" or "warm".
    client: the path of our client, "" for the cold form.
    their_client: that of the installation that we are compared with, "" for its cold form, None for no comparison.
    """

    name: str
    client: str
    their_client: str | None


@contextmanager
def forms_in(folder: Path, arguments: argparse.Namespace) -> Iterator[Sequence[Form]]:
    """Yield the forms of our own hooks. Each installation's warm form has a pool of its own in the folder."""
    if arguments.hook:
        yield []
        return
    if arguments.against:
        their_argv(arguments.against, next(iter(MACHINES)))  # fails before anything is measured
    forms = [Form("cold", "", "" if arguments.against else None)]
    with ExitStack() as pools:
        if len(os.fsencode(folder)) + SOCKET_BYTES > MAX_SOCKET_BYTES:  # as on macOS
            folder = Path(pools.enter_context(tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, dir="/tmp")))
        try:
            client = pools.enter_context(pool_of_bench(folder / "pool"))
            forms.append(Form("warm", client, None))
        except NoPoolError as error:
            sys.stderr.write(f"tailhook: only the cold form is measured: {plain(str(error))}\n")
        if arguments.against and len(forms) > 1:
            try:
                theirs = pools.enter_context(pool_of_bench(folder / "peer", str(python_of(arguments.against))))
                forms[1] = forms[1]._replace(their_client=theirs)
            except NoPoolError as error:
                words = f"only the cold forms are compared, as {arguments.against} has no pool: {error}"
                sys.stderr.write(f"tailhook: {plain(words)}\n")
        yield forms


def subjects_in(folder: Path, arguments: argparse.Namespace, forms: Sequence[Form]) -> Iterator[Subject]:
    """Yield every hook to measure, after a first run that checks what it decides and fills the caches."""
    foreign = arguments.against_command
    sizes = [arguments.size] if arguments.size else COMPARED
    if arguments.hook:
        argv = arguments.hook
        for number, name in enumerate(arguments.event):
            case = Case("idle", name, WORKING, False, nothing, event=name)
            project = Stop(folder / str(number), case, sizes[0])
            project.env["PATH"] = os.environ.get("PATH", os.defpath)  # the user's hook may need it
            yield Subject(name, "", "command", argv, project, foreign)
        return
    for number, case in enumerate(chosen_cases(arguments)):
        for size in sizes:
            project = Stop(folder / f"{number}-{size}", case, size)
            for name, client, their_client in forms:
                argv = hook_command(case.machine, client)
                project.reset()
                project.check(argv)
                other = foreign
                if their_client:
                    other = hook_command(case.machine, their_client)
                elif their_client is not None:
                    other = their_argv(arguments.against, case.machine)
                yield Subject(case.name, size, name, argv, project, other, bool(their_client))


def count_if_possible(subjects: Sequence[Subject], is_asked: bool) -> None:
    """Count the instructions, by valgrind only if they are asked for.

    Raises CommandError if they are asked for and no hook is left that is counted, OSError, and CountError.
    """
    count = instruction_counter(slow=is_asked)
    try:
        if count:
            count_all_instructions(subjects, count)
    except CountError:
        if is_asked:
            raise
    if is_asked and all(subject.instructions is None for subject in subjects):
        raise CommandError("--max-instructions: no hook is left whose instructions can be counted")


def chosen_cases(arguments: argparse.Namespace) -> list[Case]:
    """Return the cases that the arguments leave."""
    return [
        case
        for case in CASES
        if (not arguments.case or fnmatch.fnmatchcase(case.name, arguments.case))
        and (not arguments.machine or case.machine == arguments.machine)
    ]


def python_of(environment: str) -> Path:
    """Return the interpreter of a virtual environment."""
    return Path(environment, "bin", "python")


def their_argv(environment: str, machine: str) -> list[str]:
    """Return the argv of another installation's hook. Raises CommandError if it does not print one.

    environment: the folder of its virtual environment.
    """
    python = python_of(environment)
    for flags in (["--cold"], []):  # an older version has one form
        try:
            done = subprocess.run(  # noqa: S603 - the environment that the user names
                [python, "-m", "tailhook", "hook-command", *flags, machine], capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise CommandError(
                f"{python}: {error.strerror}. --against takes the folder of a virtual environment."
            ) from None
        if done.returncode == 0:
            found: list[str] = json.loads(done.stdout)
            return found
    last = (done.stderr.splitlines() or ["no reason given"])[-1]
    raise CommandError(f"the tailhook in {environment} does not print its hook command: {last}")


# ---- what is written -------------------------------------------------------------


def write_figures(arguments: argparse.Namespace, facts: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
    """Write the figures, keep them, and print what has changed."""
    text = write_as("json" if arguments.json else arguments.format, facts)
    if arguments.save:
        replace_file(arguments.save, f"{write_as('json', facts)}\n".encode())
    if arguments.output:
        replace_file(arguments.output, f"{text}\n".encode())
    else:
        print_lines(text)
    if before is not None:
        lines = compare_runs(before, facts)
        if arguments.output or (arguments.format == "text" and not arguments.json):
            print_lines("", *lines)
        else:  # stdout has what a program reads
            sys.stderr.write("".join(f"{line}\n" for line in lines))


def judged(subjects: Sequence[Subject], limits: Limits, verdicts: Mapping[str, str], load: float) -> int:
    """Print each limit that is exceeded or cannot be decided; return the exit code."""
    has_failed = False
    for subject in subjects:
        if failures := subject.failures():
            has_failed = True
            runs = f"{counted(len(failures), 'runs')} of {len(subject.samples) + len(subject.others)}"
            sys.stderr.write(f"tailhook: {subject.title}: {runs} ended with exit code {failures[0]}, not 0 or 2\n")
        if why := subject.unanswered():
            has_failed = True
            sys.stderr.write(f"tailhook: {subject.title}: {why}\n")
            continue
        for verdict, words in limits.verdicts(subject):
            if verdict == FAIL:
                sys.stderr.write(f"tailhook: {subject.title}: {words}\n")
            elif verdict == NOISY:
                sys.stderr.write(f"tailhook: {subject.title}: too noisy to decide: {words}\n")
    if has_failed or FAIL in verdicts.values():
        return 1
    if NOISY in verdicts.values():
        sys.stderr.write(
            f"tailhook: the load of this computer is {load:.1f}. Close other programs, give more --rounds, "
            "or gate on --max-instructions, which hardly vary.\n"
        )
        return TOO_NOISY
    return 0
