"""`tailhook scan`: rows of many transcripts, on a terminal, in a pipe or in a file."""

import argparse
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tailhook.cli import EXIT_INTERRUPTED
from tailhook.cli.arguments import Once
from tailhook.cli.output import (
    CommandError,
    Commands,
    UsageError,
    check_stdout,
    coloured,
    command,
    counted,
    discard_output,
    naming_output,
    positive,
    whole,
)
from tailhook.cli.rows import write_chosen
from tailhook.cli.times import FORMS, time_argument
from tailhook.fleet.columns import BINARY_FORMATS, FORMATS, LARGE, ROLES, TABLE_COLUMNS, MatchOptions
from tailhook.hook.answer import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook._core import ArrowBatch
    from tailhook.cli.progress import ProgressView
    from tailhook.fleet.report import ScanReport
    from tailhook.fleet.scan import Patterns, Scan

ROWS_ARE = {"tools": "tool uses", "usage": "responses"}  # the name of a table's rows, if not the table's own
FILE_FORMATS = FORMATS[1:]  # a table is only for a person
GC_THRESHOLD = 1 << 17  # objects; with Python's 700, a scan of many files searches cycles for a sixth of its time
MAX_KINDS = 8  # of unknown records to name
MAX_PROBLEMS = 20  # lines on stderr for sources that could not be read, one for each
FOR_MATCHES = ("pattern", "patterns", "ignore_case", "signals", "categories", *MatchOptions._fields)


def add(commands: Commands) -> None:
    """Declare the command."""
    about = "search many transcripts, or list their records, tool uses, usage or sessions"
    parser = command(commands, "scan", print_scan, about, "tailhook scan --pattern todo=TODO --since 7d")
    add_sources(parser)
    parser.add_argument(
        "--table", choices=tuple(TABLE_COLUMNS), default="matches", help="what a row is (default: matches)"
    )
    find = parser.add_argument_group("what to find, for the table matches")
    find.add_argument(
        "--pattern",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="a text to find; case counts",
    )
    find.add_argument(
        "--patterns", action="append", default=[], metavar="FILE", help="a file with one NAME=TEXT a line"
    )
    find.add_argument("-i", "--ignore-case", action="store_true", help="find the patterns in small and capital letters")
    find.add_argument("--signals", action="store_true", help="find the texts that end an idle loop")
    find.add_argument("--categories", action="store_true", help="find the keywords of the memory machine")
    where = find.add_mutually_exclusive_group()
    for flag, value, words in (
        ("--outside-code", False, "search only outside of Markdown code (default)"),
        ("--in-code", True, "search only in code"),
        ("--anywhere", None, "search in code and outside of it"),
    ):
        where.add_argument(flag, dest="in_code", action="store_const", const=(value,), help=words)
    find.add_argument(
        "--context", type=whole, metavar="N", help="the number of characters around a match (default: 80)"
    )
    find.add_argument(
        "--all-text",
        action="store_true",
        help="search the text of all records (not results of tools)",
    )
    find.add_argument("--sidechains", action="store_true", help="search what sub-agents wrote, too")
    which = parser.add_argument_group("which rows")
    about = f"keep only rows of this role: {', '.join(ROLES)}"
    which.add_argument("--role", action="append", choices=ROLES, default=[], metavar="R", help=about)
    add_conditions(which)
    which.add_argument("--limit", type=positive, metavar="N", help="print at most N rows")
    out = parser.add_argument_group("output")
    out.add_argument("--count", action="store_true", help="print only how many rows there are")
    out.add_argument("--sort", metavar="COLUMN", help="sort by a column; COLUMN:desc for the greatest first")
    about = f"the columns to print, separated by commas; {', '.join(LARGE)} only if named"
    out.add_argument("--columns", action="append", metavar="LIST", help=about)
    form = out.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=FORMATS, help="the form of the rows (default: table on a terminal, otherwise jsonl)"
    )
    form.add_argument(
        "--json", action="store_true", help="print JSON lines, like --format jsonl; with --count an object"
    )
    out.add_argument("-o", "--output", metavar="FILE", help="write a file; its ending names the format; - is stdout")
    out.add_argument(
        "--resume", metavar="DIR", help="keep all rows as Parquet files in a folder, and read only what is new"
    )
    out.add_argument("--redact", action="store_true", help="mask secrets in context, text, command and input")
    add_workers(parser)


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name transcripts."""
    about = "files, folders, globs or URLs (default: the transcripts of all installed hosts)"
    parser.add_argument("sources", nargs="*", metavar="SOURCES", help=about)
    parser.set_defaults(add_words=lambda arguments, words: arguments.sources.extend(words))


def add_conditions(parser: Any) -> None:
    """Add the flags that choose rows of any table."""
    parser.add_argument("--since", type=time_argument, metavar="T", help=f"keep only rows from this time on: {FORMS}")
    parser.add_argument("--until", type=time_argument, metavar="T", help=f"keep only rows before this time: {FORMS}")
    about = "keep only rows of this folder, or of one below it (relative: from here)"
    parser.add_argument("--project", action=Once, metavar="P", help=about)
    about = "keep only rows of the session with this id"
    parser.add_argument("--session", action="append", default=[], metavar="ID", help=about)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the flag of how a scan runs."""
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="the number of threads (default: one for each processor)"
    )


# ---- the question --------------------------------------------------------------


def print_scan(arguments: argparse.Namespace) -> int:
    """Print the rows. Return 1 if a source could not be read."""
    from tailhook.cli.progress import ProgressView

    check_flags(arguments)
    arguments = choose_output(arguments)
    check_output(arguments)
    if not arguments.output:
        check_stdout("redirect it to a file" if arguments.count else "give -o FILE")
    asked = asked_columns(arguments)
    view = ProgressView()
    found = make_scan(
        arguments,
        table=arguments.table,
        patterns=pattern_set(read_patterns(arguments), arguments),
        signals=arguments.signals,
        categories=arguments.categories,
        roles=arguments.role or None,
        columns=asked and list(dict.fromkeys([*asked, *extra_columns(arguments, asked)])),
        **match_options(arguments),
        resume=arguments.resume,
        redact=arguments.redact,
        progress=view,
    )
    if arguments.resume:
        return run(found, view, lambda batches: write_folder(found, arguments.resume), "")
    rows_are = ROWS_ARE.get(arguments.table) or str(arguments.table)
    stops_at = None if arguments.sort else arguments.limit
    return run(
        found, view, lambda batches: write_chosen(arguments, found, asked or found.columns, batches), rows_are, stops_at
    )


def check_flags(arguments: argparse.Namespace) -> None:
    """Raise UsageError for contradictory flags, and for empty names."""
    for flag, name, kind in (("--resume", arguments.resume, "a folder"), ("-o", arguments.output, "a file")):
        if name == "":
            raise UsageError(f"{flag} is an empty name: give {kind}")
    if arguments.table != "matches":
        for name in FOR_MATCHES:
            if getattr(arguments, name) not in (None, False, []):
                flag = (
                    "--outside-code, --in-code and --anywhere" if name == "in_code" else f"--{name.replace('_', '-')}"
                )
                raise UsageError(f"{flag}: only for --table matches")
    elif not (arguments.pattern or arguments.patterns or arguments.signals or arguments.categories):
        advice = "give --pattern NAME=TEXT, --patterns FILE, --signals or --categories"
        raise UsageError(f"nothing to find: {advice}, or another --table")
    if arguments.ignore_case and not (arguments.pattern or arguments.patterns):
        raise UsageError("--ignore-case: only with --pattern or --patterns")
    if arguments.count and (arguments.output or arguments.format):
        raise UsageError("--count prints a number: leave out --format and -o")
    if arguments.resume:
        check_resume(arguments)


def check_resume(arguments: argparse.Namespace) -> None:
    """Raise UsageError for flags that do not go together with --resume."""
    folder = arguments.resume
    if arguments.output and not is_same_path(arguments.output, folder):
        raise UsageError(f"--resume {folder} writes its rows to {folder}: leave out -o")
    for flag, value in (("--count", arguments.count), ("--sort", arguments.sort), ("--limit", arguments.limit)):
        if value:
            raise UsageError(f"--resume keeps all rows as Parquet files: leave out {flag}, and ask the files")
    if arguments.json or arguments.format not in (None, "parquet"):
        flag = "--json" if arguments.json else f"--format {arguments.format}"
        raise UsageError(f"--resume keeps all rows as Parquet files: leave out {flag}")


def choose_output(arguments: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments with their format and file; the file is None for stdout.

    Raises UsageError if they name no format, or a format that stdout does not take.
    """
    output, format_name = arguments.output, "jsonl" if arguments.json else arguments.format
    if arguments.resume:
        output, format_name = arguments.resume, "parquet"
    elif output == "-":
        output = None
    if format_name is None:
        ending = Path(output or "").suffix.removeprefix(".")
        if ending and ending not in FILE_FORMATS:
            known = ", ".join(f".{name}" for name in FILE_FORMATS)
            raise UsageError(f"{output}: the ending names no format ({known}): give --format")
        format_name = ending or ("table" if sys.stdout.isatty() and not output else "jsonl")
    if format_name in BINARY_FORMATS and not output:
        raise UsageError(f"--format {format_name} needs -o FILE")
    return argparse.Namespace(**{**vars(arguments), "output": output, "format": format_name})


def check_output(arguments: argparse.Namespace) -> None:
    """Raise UsageError if the file to write is a URL, a folder by its name, or one of the files to scan."""
    from tailhook.fleet.listing import is_read
    from tailhook.transcripts.urls import is_url

    output = arguments.output
    if arguments.resume or not output:
        return
    if is_url(output):
        raise UsageError(f"-o {output} is a URL: rows are written to a file of this computer")
    if os.path.basename(output) in ("", ".", ".."):  # noqa: PTH119 - a path of pathlib has no slash at its end
        raise UsageError(f"-o {output} is the name of a folder: give that of a file")
    if is_read(output, arguments.sources or None):
        raise UsageError(f"{output} is one of the files to scan: give the name of another file")


def is_same_path(first: str, second: str) -> bool:
    """Return whether two names mean the same place. It may not exist."""
    return os.path.realpath(first) == os.path.realpath(second)


def read_patterns(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return the patterns by name. Raises UsageError, and OSError for a file that cannot be read."""
    found: dict[str, list[str]] = {}
    for word in arguments.pattern:
        add_pattern(found, word, f"--pattern {word}")
    for name in arguments.patterns:
        if not name:
            raise UsageError("--patterns is an empty name: give a file")
        try:
            text = Path(name).read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError(f"{name} is not valid UTF-8") from None
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        if not any(line.strip() for line in lines):
            raise UsageError(f"{name} has no patterns: write one NAME=TEXT a line")
        for number, line in enumerate(lines, 1):
            if line.strip():
                add_pattern(found, line, f"{name}, line {number}")
    return found


def pattern_set(patterns: dict[str, list[str]], arguments: argparse.Namespace) -> "Patterns":
    """Return the patterns as a scan takes them."""
    if not arguments.ignore_case:
        return patterns
    from tailhook.patterns.sets import PatternSet

    return PatternSet(patterns, ignore_case=True)


def match_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of matches that were given, as a scan takes them."""
    given = {name: getattr(arguments, name) for name in MatchOptions._fields if getattr(arguments, name) is not None}
    if "in_code" in given:
        (given["in_code"],) = given["in_code"]
    return given


def add_pattern(found: dict[str, list[str]], word: str, place: str) -> None:
    """Add NAME=TEXT. Raises UsageError."""
    name, sign, text = word.partition("=")
    if not (sign and name and text):
        raise UsageError(f"{place}: write NAME=TEXT")
    found.setdefault(name, []).append(text)


def asked_columns(arguments: argparse.Namespace) -> list[str] | None:
    """Return the columns to print, or None for all of them. Raises UsageError."""
    from tailhook.cli.table import SHOWN
    from tailhook.fleet.scan import check_columns

    asked = None
    if arguments.columns is not None:
        asked = [name.strip() for name in ",".join(arguments.columns).split(",") if name.strip()]
    elif arguments.format == "table":
        asked = list(SHOWN[arguments.table])
    sort = None if arguments.sort is None else [arguments.sort.removesuffix(":desc")]
    try:
        for columns in (asked, sort):
            check_columns(arguments.table, columns)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return asked


def extra_columns(arguments: argparse.Namespace, asked: list[str]) -> list[str]:
    """Return the needed columns that are not printed."""
    from tailhook.cli.table import HIGHLIGHT

    sort = [arguments.sort.removesuffix(":desc")] if arguments.sort else []
    is_highlighted = arguments.format == "table" and "context" in asked and not arguments.redact
    return [*sort, *(HIGHLIGHT if is_highlighted else ())]


def make_scan(arguments: argparse.Namespace, **question: Any) -> "Scan":
    """Return the scan for the flags of the `add_*` functions and a question. Raises UsageError."""
    from tailhook.fleet.scan import scan as make

    try:
        return make(
            arguments.sources or None,
            since=arguments.since,
            until=arguments.until,
            project=None if arguments.project is None else project_argument(arguments.project),
            sessions=arguments.session or None,
            workers=arguments.workers,
            **question,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def project_argument(word: str) -> str:
    """Return the name of a folder. Raises UsageError if it is empty."""
    if not word:
        raise UsageError("--project is an empty name: give a folder")
    return word


# ---- the run -------------------------------------------------------------------


class Terminated(BaseException):
    """The process must end because of a signal. The argument is the signal's number."""


def raise_terminated(number: int, _: object) -> None:
    """Raise Terminated, so that unfinished files are removed."""
    raise Terminated(number)


def run(
    scan: "Scan",
    view: "ProgressView",
    write: "Callable[[Iterable[ArrowBatch]], int | None]",
    rows_are: str,
    stops_at: int | None = None,
) -> int:
    """Write the rows of a scan, then its report. Return the exit code.

    view: the scan's progress.
    write: takes the batches, and returns how many rows were written, or None.
    rows_are: the name of the rows in the summary.
    stops_at: the number of rows after which `write` takes no more batches; None if it takes all.

    If the person interrupts it, finished rows are written, and the process exits at once, without waiting for reading
    threads. SIGTERM and SIGHUP end it as if they were not handled, after unfinished files were removed.
    """
    count = write_until_stopped(scan, view, write)
    print_report(scan, view, count, rows_are, stops_at)
    return 1 if scan.report.skipped else 0


def write_until_stopped(
    scan: "Scan", view: "ProgressView", write: "Callable[[Iterable[ArrowBatch]], int | None]"
) -> int | None:
    """Write the rows of a scan, and return the result of `write`. See `run` for interruptions.

    Raises OSError or CommandError if the output cannot be written; stdout leads nowhere then.
    """
    gc.set_threshold(GC_THRESHOLD)
    count = None
    handled = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    for number in handled:
        signal.signal(number, raise_terminated)
    try:
        try:
            count = write(hiding(scan, view))
            sys.stdout.flush()
        finally:
            view.end()
    except KeyboardInterrupt:
        files, all_files = view.newest.files, view.newest.all_files
        when = f"after {files:,} of {all_files:,} files" if all_files else "before the first file"
        sys.stderr.write(f"tailhook: interrupted {when}\n")
        sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)
    except Terminated as error:
        signal.signal(error.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), error.args[0])
    except (OSError, CommandError):  # of the output
        discard_output()
        raise
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
    return count


def print_report(scan: "Scan", view: "ProgressView", count: int | None, rows_are: str, stops_at: int | None) -> None:
    """Print a scan's report on stderr, and on a terminal a last line with a summary.

    count: the result of `write`. The other parameters are those of `run`.
    """
    report = scan.report
    lines = report_lines(scan, report, view.newest.all_files)
    if not view.has_rows and not scan.resume and view.newest.all_files:
        lines += missing_lines(scan)
    for line in lines:
        sys.stderr.write(f"tailhook: {plain(line)}\n")
    if sys.stdout.isatty() and sys.stderr.isatty() and (count is not None or scan.resume):
        rows = f"rows are in {scan.resume}" if count is None else counted(count, rows_are)
        is_limited = count is not None and count == stops_at
        done = f"as many as --limit allows, in {seconds_of(report):.2f} s" if is_limited else summary(report)
        sys.stderr.write(f"{coloured(f'{rows}; {done}', 2)}\n")


def write_folder(scan: "Scan", folder: str) -> None:
    """Bring the folder of `--resume` up to date. Raises CommandError, TailhookError and OSError."""
    with naming_output(folder):
        scan.update()


def hiding(batches: "Iterable[ArrowBatch]", view: "ProgressView") -> "Iterator[ArrowBatch]":
    """Yield the batches. Hide the progress bar before each batch and after the last one."""
    for batch in batches:
        view.hide()
        view.has_rows = view.has_rows or len(batch) > 0
        yield batch
    view.hide()


def report_lines(scan: "Scan", report: "ScanReport", files: int) -> list[str]:
    """Return lines for a person about a scan, beside its rows.

    files: the number of files to read; with --limit not all of them are in the report.
    """
    lines = [f"{path}: {reason}" for path, reason in report.skipped[:MAX_PROBLEMS]]
    if (more := len(report.skipped) - MAX_PROBLEMS) > 0:
        lines.append(f"{counted(more, 'more sources')} could not be read")
    found = (files, report.unchanged_files, report.older_files, report.skipped)
    if not any(found):
        lines.append(
            "there are no transcripts of an installed host: name files or folders"
            if scan.sources is None
            else "no transcript is below the named folders: a transcript has .jsonl in its name"
        )
    if report.older_files:
        were = "was" if report.older_files == 1 else "were"
        old = f"{counted(report.older_files, 'files')} that {were} last written more than a day before --since"
        lines.append(f"{old} {were} not read")
    if report.broken_lines:
        are = "is not a valid record" if report.broken_lines == 1 else "are not valid records"
        lines.append(f"{counted(report.broken_lines, 'lines')} {are}")
    if report.long_lines:
        are = "is longer than 16 MiB and was" if report.long_lines == 1 else "are longer than 16 MiB and were"
        lines.append(f"{counted(report.long_lines, 'lines')} {are} skipped")
    if report.unknown_types:
        what = "records with tokens that are not counted" if scan.table == "usage" else "records of unknown types"
        lines.append(f"{what}: {describe_kinds(report.unknown_types)}")
    return lines


def missing_lines(scan: "Scan") -> list[str]:
    """Return hints for a scan without rows: on the conditions that are easily given wrongly."""
    conditions = scan._question.conditions
    lines = []
    if conditions.since is not None and conditions.until is not None and conditions.since >= conditions.until:
        lines.append("no row fits these times: --since must be before --until")
    if conditions.project is not None:
        lines.append(
            f"no row fits --project {conditions.project}: write a folder as in the column project, or one above it"
        )
    if conditions.sessions is not None:
        named = ", ".join(conditions.sessions)
        lines.append(f"no row fits --session {named}: write whole ids, as in the column session_id")
    return lines


def describe_kinds(counts: "Mapping[tuple[str, str], int]") -> str:
    """Return the number of records by unknown type and version of the host, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{' of version '.join(filter(None, kind))} ({number:,})" for kind, number in ordered[:MAX_KINDS]]
    more = sum(number for _, number in ordered[MAX_KINDS:])
    return ", ".join([*words, f"others ({more:,})"] if more else words)


def summary(report: "ScanReport") -> str:
    """Return the last line of a scan: how much was read."""
    from tailhook.pictures.axis import format_bytes

    seconds = seconds_of(report)
    rate = f" ({format_bytes(report.bytes / seconds)}/s)" if report.bytes else ""
    files = counted(report.files, "files")
    unchanged = f", {report.unchanged_files:,} unchanged" if report.unchanged_files else ""
    return f"{files}{unchanged}, {format_bytes(report.bytes)} in {seconds:.2f} s{rate}"


def seconds_of(report: "ScanReport") -> float:
    """Return how long a scan took, at least a millisecond."""
    return max(report.seconds or 0, 1e-3)
