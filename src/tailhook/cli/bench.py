"""`tailhook bench`: how long hooks take on this computer, beside programs that do nothing; a gate for CI."""

import argparse
import errno
import fnmatch
import itertools
import math
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tailhook.bench.cases import (
    CASES,
    COMPARED,
    COMPARED_FOR_COMMANDS,
    EVENT_FIELDS,
    SIZES,
    WORKING,
    BenchProject,
    Case,
    no_state,
)
from tailhook.bench.commands import NOTICE_S, check_first_run, command_argv
from tailhook.bench.instructions import CountError, instruction_counter
from tailhook.bench.intervals import FAIL, NOISY
from tailhook.bench.other import OtherError, is_argv, printed_by
from tailhook.bench.report import (
    BENCH_FORMATS,
    bench_facts,
    compare_runs,
    format_figures,
    note_earlier_run,
    read_saved,
)
from tailhook.bench.rounds import (
    Limits,
    Subject,
    count_all_instructions,
    measure_until_clear,
)
from tailhook.bench.warm import NoPoolError, pool_of_bench
from tailhook.cli.arguments import Once, describe_unknown
from tailhook.cli.output import (
    CommandError,
    Commands,
    UsageError,
    command,
    naming_output,
    positive,
    print_lines,
    reader_may_leave,
    replace_output,
)
from tailhook.exits import signals_as_exits, temporary_folder
from tailhook.hook.answer import describe, plain
from tailhook.hook.machines import MACHINES
from tailhook.install.command import hook_command
from tailhook.pool.installation import MAX_SOCKET_BYTES

DEFAULT_ROUNDS = 100
DEFAULT_FORMAT = "text"
ATTEMPTS = 4  # how often a hook is measured until its verdict is clear
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
    about = "measure only cases whose name matches, such as 'idle*'"
    what.add_argument("--case", action=Once, type=filled, metavar="GLOB", help=about)
    what.add_argument("--machine", action=Once, choices=[*MACHINES], help="measure only cases of this machine")
    sizes = f"{', '.join(COMPARED)}; with --hook {', '.join(COMPARED_FOR_COMMANDS)}"
    what.add_argument(
        "--size",
        action=Once,
        type=parse_size,
        choices=[*SIZES],
        help=f"measure with transcripts of this size only (default: {sizes})",
    )
    what.add_argument(
        "--hook",
        action="append",
        type=hook_command_of,
        metavar="CMD",
        help="measure any hook command, with the usual payloads of an event; several are measured side by side",
    )
    about = "the name of the --hook in every format (default: CMD)"
    what.add_argument("--name", action="append", type=filled, metavar="NAME", help=about)
    what.add_argument(
        "--event",
        action="extend",
        type=event_names,
        metavar="NAMES",
        help=f"the events of --hook, separated by commas (default: Stop; known: {', '.join(EVENT_FIELDS)})",
    )
    about = "compare each case with the tailhook of another virtual environment"
    what.add_argument("--against", type=filled, metavar="ENV", help=about)
    about = "compare with another hook command, on the same payloads"
    what.add_argument("--against-command", type=hook_argv, metavar="CMD", help=about)
    about = "the number of runs of each hook (default: 100)"
    what.add_argument("--rounds", type=positive, default=DEFAULT_ROUNDS, metavar="N", help=about)
    gate = parser.add_argument_group("limits; exit code 1 if one is exceeded, 3 if it is too noisy to decide")
    about = "the highest ratio of the median to that of bare Python"
    gate.add_argument("--max-ratio", type=limit, metavar="R", help=about)
    gate.add_argument("--max-ms", type=limit, metavar="MS", help="the highest median, in milliseconds")
    gate.add_argument("--max-p99-ms", type=limit, metavar="MS", help="the highest 99th percentile, in milliseconds")
    about = "the highest ratio of the instructions to those of bare Python"
    gate.add_argument("--max-instructions", type=limit, metavar="R", help=about)
    gate.add_argument(
        "--max-regression",
        type=limit,
        metavar="R",
        help="the highest ratio to the run of --compare, or to the hook of --against or --against-command; "
        "1.1 is 10 %% slower",
    )
    output = parser.add_argument_group("what is written")
    output.add_argument(
        "--format",
        choices=BENCH_FORMATS,
        help="the form of the figures; bmf is for Bencher, github for github-action-benchmark "
        f"(default: {DEFAULT_FORMAT})",
    )
    output.add_argument("--json", action="store_true", help="print JSON, like --format json")
    output.add_argument(
        "-o", "--output", type=filled, metavar="FILE", help="write the figures to a file, not to stdout"
    )
    output.add_argument("--save", type=filled, metavar="FILE", help="keep the figures for --compare")
    output.add_argument("--compare", type=filled, metavar="FILE", help="print what has changed since --save")


def limit(word: str) -> float:
    """Parse a limit: a finite number above 0. Raises ArgumentTypeError."""
    try:
        number = float(word.replace("_", "?"))  # Python would take 1_35 for 135
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number <= 0:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number above 0")
    return number


def filled(word: str) -> str:
    """Parse an argument. It must not be empty, as from an unset variable. Raises ArgumentTypeError."""
    if not word.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return word


def hook_argv(command: str) -> list[str]:
    """Parse a hook command. Raises ArgumentTypeError."""
    try:
        return command_argv(filled(command))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{command!r}: {error}") from None


def hook_command_of(command: str) -> tuple[str, list[str]]:
    """Parse a hook command, and return it with its argv. Raises ArgumentTypeError."""
    return " ".join(command.split()), hook_argv(command)


def parse_size(word: str) -> str:
    """Return the name of a size. The blank before its unit may be missing, and small letters are accepted."""
    return next((size for size in SIZES if size.replace(" ", "") == word.replace(" ", "").upper()), word)


def event_names(word: str) -> list[str]:
    """Parse names of events, separated by commas. Raises ArgumentTypeError."""
    names = [name for name in word.split(",") if name]
    unknown = [name for name in names if name not in EVENT_FIELDS]
    if unknown:
        raise argparse.ArgumentTypeError(describe_unknown("event", unknown, EVENT_FIELDS))
    if not names:
        raise argparse.ArgumentTypeError(f"no event is named. The events are: {', '.join(EVENT_FIELDS)}")
    return names


def bench(arguments: argparse.Namespace) -> int:
    """Run the rounds, write the figures, and judge them: returns 0, 1 or TOO_NOISY."""
    check_arguments(arguments)
    before = read_saved(arguments.compare) if arguments.compare else None
    for name in filter(None, (arguments.output, arguments.save)):
        check_target(name)
    limits = Limits(
        arguments.max_ratio,
        arguments.max_ms,
        arguments.max_p99_ms,
        arguments.max_instructions,
        arguments.max_regression,
    )
    with (
        signals_as_exits(),
        temporary_folder(FOLDER_PREFIX) as folder,
        naming_output(folder),
        forms_in(Path(folder), arguments) as forms,
    ):
        subjects = list(subjects_in(Path(folder), arguments, forms))
        if not subjects:
            raise UsageError("no case fits --case, --machine and --size: change one of them, or leave it out")
        if before is not None:
            check_earlier_run(arguments, note_earlier_run(subjects, before), len(subjects))
        count_if_possible(subjects, bool(arguments.max_instructions), is_foreign=bool(arguments.hook))
        verdicts = measure_until_clear(subjects, arguments.rounds, limits, ATTEMPTS)
        facts = bench_facts([subject for subject in subjects if not subject.unanswered()], limits, verdicts)
    is_written = True
    with reader_may_leave():
        is_written = write_figures(arguments, facts, before)
    code = report_verdicts(subjects, limits, verdicts, facts["load"][0])
    return code if is_written else 1


def check_arguments(arguments: argparse.Namespace) -> None:
    """Raise UsageError for arguments that do not go together."""
    if arguments.against and arguments.against_command:
        raise UsageError("--against and --against-command: give one of them")
    if arguments.hook and (arguments.case or arguments.machine or arguments.against):
        raise UsageError("--hook measures other commands: leave out --case, --machine and --against")
    if arguments.name and len(arguments.name) != len(arguments.hook or ()):
        raise UsageError("give one --name for each --hook")
    names = arguments.name or [command for command, _ in arguments.hook or ()]
    if len({*names}) < len(names):
        raise UsageError("two hooks have the same name: give each --hook a --name of its own")
    if arguments.max_regression and not (arguments.compare or arguments.against or arguments.against_command):
        raise UsageError("--max-regression compares: give --compare, --against or --against-command")
    if arguments.hook:
        Path.cwd()  # where it runs: raises FileNotFoundError if the folder was removed
    if arguments.event and not arguments.hook:
        raise UsageError("--event is for --hook")
    if arguments.json and arguments.format not in (None, "json"):
        raise UsageError("--json and --format: give one of them")
    files = {os.path.realpath(path) for path in (arguments.output, arguments.save) if path}
    if arguments.output and arguments.save and len(files) == 1:
        raise UsageError("-o and --save: give two files")
    if arguments.max_instructions and not instruction_counter(slow=True):
        raise CommandError(
            "--max-instructions: neither the processor (perf_event_open) nor valgrind counts instructions here. "
            "Install valgrind, or leave the limit out."
        )


# ---- what is measured ------------------------------------------------------------


class Form(NamedTuple):
    """A form of our own hooks.

    name: "cold" or "warm".
    client: the path of our client, "" for the cold form.
    their_client: the other installation's, "" for its cold form, None for no comparison.
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
            folder = Path(pools.enter_context(temporary_folder(FOLDER_PREFIX, "/tmp")))  # noqa: S108 - a short path
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
    """Yield every hook to measure, after a first run that checks its decision and fills the caches."""
    foreign = arguments.against_command
    sizes = [arguments.size] if arguments.size else COMPARED
    if arguments.hook:
        yield from commands_in(folder, arguments)
        return
    for number, case in enumerate(chosen_cases(arguments)):
        for size in sizes:
            project = BenchProject(folder / f"{number}-{size}", case, size)
            if foreign:
                project.env["PATH"] = users_environment()["PATH"]
                check_first_run(foreign, project)
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


def commands_in(folder: Path, arguments: argparse.Namespace) -> Iterator[Subject]:
    """Yield the commands of --hook, each with each event and size, after a first run.

    Prints how long all rounds take, if that exceeds NOTICE_S.
    """
    names = arguments.name or [command for command, _ in arguments.hook]
    argvs = [argv for _, argv in arguments.hook]
    sizes = [arguments.size] if arguments.size else COMPARED_FOR_COMMANDS
    milliseconds = 0.0
    for number, (event, size) in enumerate(itertools.product(dict.fromkeys(arguments.event or ["Stop"]), sizes)):
        case = Case("idle", event, WORKING, False, no_state, event=event)
        for name, argv in zip(names, argvs, strict=True):
            project = BenchProject(folder / f"{number}-{names.index(name)}", case, size)
            # As in the user's own project: the current folder. Our hooks keep their files in the temporary one.
            project.env.update(users_environment(), CLAUDE_PROJECT_DIR=str(Path.cwd()))
            project.env["XDG_STATE_HOME"] = str(project.folder / ".local" / "state")
            milliseconds += check_first_run(argv, project)
            if arguments.against_command:
                milliseconds += check_first_run(arguments.against_command, project)
            yield Subject(f"{name}, {event}", size, "command", argv, project, arguments.against_command)
    seconds = arguments.rounds * milliseconds / 1000
    if seconds > NOTICE_S:
        advice = "--rounds and --size make it shorter"
        sys.stderr.write(
            f"tailhook: {arguments.rounds} rounds take {seconds:.0f} s if each run is like the first; {advice}\n"
        )


def check_earlier_run(arguments: argparse.Namespace, new: Sequence[Subject], count: int) -> None:
    """Name the hooks that --max-regression cannot judge. Raises CommandError if there are no others.

    new: the hooks that the file of --compare lacks.  count: of all hooks.
    """
    if not arguments.max_regression or arguments.against or arguments.against_command:
        return
    if len(new) == count:
        raise CommandError(f"--max-regression: no hook of this run is in {arguments.compare}")
    for subject in new:
        sys.stderr.write(f"tailhook: {subject.title}: not in {plain(arguments.compare)}, so its change is not judged\n")


def users_environment() -> dict[str, str]:
    """Return the variables with which a user's hook finds its programs and its files."""
    found = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {"PATH": os.defpath, **found}


def count_if_possible(subjects: Sequence[Subject], is_asked: bool, is_foreign: bool) -> None:
    """Count the instructions.

    is_asked: whether there is a limit on them.
    is_foreign: whether the hooks are a user's own. Some programs take very long in valgrind, so it counts them only if
        there is a limit.

    Raises CommandError if there is a limit but no hook can be counted; OSError; and CountError.
    """
    count = instruction_counter(slow=is_asked or not is_foreign)
    try:
        if count:
            count_all_instructions(subjects, count)
    except (CountError, OSError):
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
    if not python.exists():
        raise CommandError(f"{python}: no such file. --against takes the folder of a virtual environment.")
    why = ""
    for flags in (["--cold"], []):  # an older version has one form
        try:
            found: list[str] = printed_by([python, "-m", "tailhook", "hook-command", *flags, machine])
        except OtherError as error:
            why = str(error)
            continue
        if is_argv(found):
            return found
        why = "it printed something else"
    raise CommandError(f"the tailhook in {environment} does not print its hook command: {why}")


# ---- what is written -------------------------------------------------------------


def write_figures(arguments: argparse.Namespace, facts: Mapping[str, Any], before: Mapping[str, Any] | None) -> bool:
    """Write the figures, keep them, and print what has changed. Return whether each file was written.

    If a file cannot be written, its text is printed, unless something else is.
    """
    chosen = "json" if arguments.json else arguments.format or DEFAULT_FORMAT
    text, kept = format_figures(chosen, facts), format_figures("json", facts)
    is_output_written = not arguments.output or write_text_file(arguments.output, text)
    is_kept = not arguments.save or write_text_file(arguments.save, kept)
    if not arguments.output or not is_output_written:
        print_lines(text)
    elif not is_kept:
        print_lines(kept)
    if before is not None:
        lines = compare_runs(before, facts)
        if arguments.output or chosen == DEFAULT_FORMAT:
            print_lines("", *lines)
        else:  # a program reads stdout
            sys.stderr.write("".join(f"{line}\n" for line in lines))
    return is_output_written and is_kept


def check_target(name: str) -> None:
    """Raise OSError if a file cannot be written.  name: its path, as a person gives it."""
    try:
        mode = Path(name).stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode) or name.endswith("/"):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(mode):
        return  # to open a pipe or a device may have an effect
    folder = os.path.dirname(os.path.realpath(name))  # noqa: PTH120
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = folder
        raise


def write_text_file(name: str, text: str) -> bool:
    """Write a text to a file. Return whether that succeeded. If not, print the reason on stderr."""
    try:
        replace_output(name, f"{text}\n".encode())
    except OSError as error:
        sys.stderr.write(f"tailhook: {plain(describe(error))}\n")
        return False
    return True


def report_verdicts(subjects: Sequence[Subject], limits: Limits, verdicts: Mapping[str, str], load: float) -> int:
    """Print each limit that is exceeded or undecided; return the exit code."""
    has_failed = False
    for subject in subjects:
        for words in subject.failed_words():
            has_failed = True
            sys.stderr.write(f"tailhook: {subject.title}: {words}\n")
        if why := subject.unanswered():
            has_failed = True
            sys.stderr.write(f"tailhook: {subject.title}: {why}\n")
            continue
        for verdict, words in limits.verdicts(subject):
            if verdict in (FAIL, NOISY):
                sys.stderr.write(f"tailhook: {subject.title}: {words}\n")
    if has_failed or FAIL in verdicts.values():
        return 1
    noisy = [subject for subject in subjects if verdicts[subject.title] == NOISY]
    missing = max(map(limits.missing_rounds, noisy), default=0)
    if missing:
        sys.stderr.write(f"tailhook: Give --rounds {missing} or more.\n")
    elif noisy:
        sys.stderr.write(
            f"tailhook: the load of this computer is {load:.1f}. Close other programs, give more --rounds, "
            "or gate on --max-instructions, which hardly vary.\n"
        )
    return TOO_NOISY if noisy else 0
