"""`tailhook doctor` checks whether the installed hooks work."""

import argparse
from collections import Counter

from tailhook.cli.output import Commands, add_json, coloured, command, print_json, print_lines, reader_may_leave
from tailhook.doctor.checks import check_installation
from tailhook.doctor.finding import FAILURE, WARNING, Finding
from tailhook.exits import signals_as_exits
from tailhook.hook.answer import plain
from tailhook.install.hooks_file import SCOPES

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
    parser.add_argument("--scope", choices=SCOPES, help="check the settings of this scope only (default: all scopes)")
    add_json(parser)


def doctor(arguments: argparse.Namespace) -> int:
    """Print every finding. Return 1 if one of them is a failure, else 0."""
    findings = []
    with signals_as_exits():
        for finding in check_installation([arguments.scope] if arguments.scope else SCOPES):
            findings.append(finding)
            if not arguments.json:
                with reader_may_leave():
                    print_lines(*lines(finding))
    counts = Counter(finding.status for finding in findings)
    failed = counts[FAILURE]
    numbers = [
        f"{counts[status]} {status}{'s' * (counts[status] > 1)}" for status in (FAILURE, WARNING) if counts[status]
    ]
    with reader_may_leave():
        if arguments.json:
            print_json({"well": not failed, "findings": [finding._asdict() for finding in findings]})
        else:
            print_lines("", f"Found {' and '.join(numbers)}." if numbers else "No problems found.")
    return 1 if failed else 0


def lines(finding: Finding) -> list[str]:
    """Return a finding as lines for a person."""
    word = coloured(f"{finding.status:<8}", COLOURS[finding.status])
    shown = [f"{word} {plain(finding.what)}"]
    return [*shown, f"         → {plain(finding.advice)}"] if finding.advice else shown
