"""`tailhook doctor` checks whether the installed hooks work."""

import argparse
import re
from collections import Counter
from collections.abc import Sequence

from tailhook.cli.arguments import Once
from tailhook.cli.output import (
    Commands,
    add_json,
    coloured,
    command,
    counted,
    print_json,
    print_lines,
    reader_may_leave,
)
from tailhook.doctor.checks import check_installation
from tailhook.doctor.finding import FAILURE, WARNING, Finding
from tailhook.exits import signals_as_exits
from tailhook.hook.answer import plain
from tailhook.install.hooks_file import SCOPES

PATH = re.compile(r"(?:(/.*?): )?(.*)", re.DOTALL)  # the beginning of a finding about a file
COLOURS = {"ok": 32, "note": 36, "warning": 33, "failure": 31}


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "doctor",
        doctor,
        "run the installed hooks in a temporary project and report problems",
        "tailhook doctor --json",
    )
    about = "check the settings of this scope only (default: all scopes)"
    parser.add_argument("--scope", action=Once, choices=SCOPES, help=about)
    add_json(parser)


def doctor(arguments: argparse.Namespace) -> int:
    """Print every finding, failures first. Return 1 if one of them is a failure, else 0."""
    with signals_as_exits():
        findings = list(check_installation([arguments.scope] if arguments.scope else SCOPES))
    counts = Counter(finding.status for finding in findings)
    failed = counts[FAILURE]
    numbers = [counted(counts[status], f"{status}s") for status in (FAILURE, WARNING) if counts[status]]
    with reader_may_leave():
        if arguments.json:
            print_json({"well": not failed, "findings": [finding._asdict() for finding in findings]})
        else:
            print_lines(
                *format_findings(findings), "", f"Found {' and '.join(numbers)}." if numbers else "No problems found."
            )
    return 1 if failed else 0


def format_findings(findings: Sequence[Finding]) -> list[str]:
    """Return the findings as lines for a person: failures, then warnings, then the rest below the names of files."""
    shown = [
        line
        for status in (FAILURE, WARNING)
        for finding in findings
        if finding.status == status
        for line in format_finding(finding, finding.what)
    ]
    heading = ""
    for finding in findings:
        if finding.status in (FAILURE, WARNING):
            continue
        path, what = PATH.findall(finding.what)[0]
        if path and path != heading:
            shown.append(plain(path))
        heading = path
        shown += [f"  {line}" if path else line for line in format_finding(finding, what)]
    return shown


def format_finding(finding: Finding, what: str) -> list[str]:
    """Return one finding as lines."""
    word = coloured(f"{finding.status:<8}", COLOURS[finding.status])
    shown = [f"{word} {plain(what)}"]
    return [*shown, f"         → {plain(finding.advice)}"] if finding.advice else shown
