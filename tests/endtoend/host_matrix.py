"""Run the same sessions in many releases of the agent hosts, and write which of them work into docs/hosts.md.

usage: host_matrix.py [--ends] [HOST[@VERSION]...]      by default all hosts

A host: the newest release of each week since June 2026, as npm has them; what host_matrix.json has is not run again.
HOST@VERSION: this release, all sessions again. Fetches each release with npm into a folder of its own, and removes it.

  --ends   the newest release, and the oldest one in which all sessions worked: both are run again. Exit 1 if one of
           their sessions works no longer.

Prints the first release that behaves differently from the one before it. If a session fails, build/ has pytest's
output in host-matrix-HOST-VERSION.log.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import date
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

from run_hosts import HERE, namespace, npm

RESULTS = HERE / "host_matrix.json"
PAGE = HERE.parents[1] / "docs" / "hosts.md"
LOGS = HERE.parents[1] / "build"
BEGIN, END = "<!-- matrix: make host-matrix -->", "<!-- end of the matrix -->"
SINCE = "2026-06-01"
PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "copilot": "@github/copilot",
    "qwen": "@qwen-code/qwen-code",
}
PARALLEL = "2"  # tests at once
ATTEMPTS = 2  # a busy computer can only make a session fail
HANGS_S = 60
IN_ALL = "test_other_hosts.py::"
# The sessions, and the test of each in each host. A test with parameters is one for each host.
SESSIONS = {
    "a person's loop": {
        "claude-code": "test_claude_briefing.py::"
        "test_the_first_request_has_the_goal_and_the_signals_of_a_loop_that_a_person_started",
        "*": IN_ALL + "test_an_agent_learns_the_goal_and_the_signal_of_a_loop_that_a_person_started",
    },
    "the agent's own loop": {
        "claude-code": "test_claude_briefing.py::"
        "test_an_agent_that_starts_its_loop_has_the_goal_and_the_signal_from_the_command",
        "*": IN_ALL + "test_an_agent_that_starts_its_loop_learns_them_from_the_command",
    },
    "a signal in code": {
        "claude-code": "test_claude_idle.py::test_a_loop_ends_at_the_signal_and_not_at_one_in_code",
        "*": IN_ALL + "test_a_loop_ends_at_the_signal_and_not_at_one_in_code",
    },
    "the board": {
        "claude-code": "test_claude_plates.py::test_a_session_is_reported_from_its_start_to_its_end",
        "*": IN_ALL + "test_the_board_gets_every_step_of_a_session",
    },
    "a permission": {
        "claude-code": "test_claude_status.py::test_a_permission_is_waited_for_while_a_parallel_tool_ends",
        "codex": "test_codex_status.py::test_a_permission_is_waited_for_until_the_person_gives_it",
        "*": "test_terminal_status.py::test_a_permission_is_waited_for_until_the_person_gives_it",
    },
    "Esc": {
        "claude-code": "test_claude_status.py::test_an_interruption_of_a_running_tool_is_seen_soon",
        "codex": "test_codex_status.py::test_a_session_is_idle_after_escape_in_a_tool",
    },
    "a compaction": {
        "claude-code": "test_claude_idle.py::test_a_loop_is_repeated_after_a_compaction",
        "codex": IN_ALL + "test_after_a_compaction_codex_gives_the_agent_its_loop_again",
        "qwen": IN_ALL + "test_after_a_compaction_qwen_gives_the_agent_its_loop_again",
    },
}
Row = dict[str, str]  # of a release: for each session, "" if it works, or the first line of what failed


def main() -> int:
    """Run the sessions; return 1 if one that worked fails now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ends", action="store_true")
    parser.add_argument("hosts", nargs="*", metavar="HOST[@VERSION]", default=list(PACKAGES))
    given = parser.parse_args()
    results: dict[str, dict[str, Row]] = json.loads(RESULTS.read_text())
    worse = False
    for word in given.hosts:
        host, _, version = word.partition("@")
        known = results.setdefault(host, {})
        for release in [version] if version else ends(host, known) if given.ends else missing(host, known):
            row = run_release(host, release, {} if version or given.ends else known.get(release, {}))
            worse = worse or fails_newly(row, release, known)
            known[release] = row
            failures = [f"{name}: {why}" for name, why in row.items() if why]
            sys.stdout.write(f"{host} {release}: {'; '.join(failures) or 'all work'}\n")
            sys.stdout.flush()
            RESULTS.write_text(json.dumps(sorted_rows(results), indent=1, ensure_ascii=False) + "\n")
    page = PAGE.read_text()
    PAGE.write_text(page[: page.index(BEGIN)] + tables(results) + page[page.index(END) + len(END) :])
    sys.stdout.writelines(f"{line}\n" for line in changes(results))
    return int(worse and given.ends)


def number(version: str) -> list[int]:
    """Return the numbers of a version, for comparing."""
    return [int(part) for part in version.split(".")]


def sorted_rows(results: dict[str, dict[str, Row]]) -> dict[str, dict[str, Row]]:
    """Return the same with each host's releases in order, oldest first."""
    return {host: dict(sorted(rows.items(), key=lambda row: number(row[0]))) for host, rows in results.items()}


def newest_of_weeks(times: dict[str, str]) -> list[str]:
    """Return the newest release of each week since SINCE, oldest first. A week without a newer one has none.

    times: when each release was published (ISO 8601), with npm's words for the package itself.
    """
    weeks: dict[tuple[int, int], str] = {}
    for version, at in times.items():
        if at >= SINCE and version.replace(".", "").isdigit():
            week = date.fromisoformat(at[:10]).isocalendar()[:2]
            weeks[week] = max(weeks.get(week, "0"), version, key=number)
    found: list[str] = []
    for _, version in sorted(weeks.items()):
        if not found or number(version) > number(found[-1]):
            found.append(version)
    return found


def missing(host: str, known: dict[str, Row]) -> list[str]:
    """Return the newest release of each week in which a session was not run."""
    times = json.loads(npm("view", PACKAGES[host], "time", "--json", folder=HERE))
    return [version for version in newest_of_weeks(times) if tests_of(host).keys() - known.get(version, {}).keys()]


def ends(host: str, known: dict[str, Row]) -> list[str]:
    """Return the oldest release in which all sessions worked, and the newest one on npm."""
    oldest = [version for version, row in known.items() if not any(row.values())][:1]
    return list(dict.fromkeys([*oldest, npm("view", PACKAGES[host], "version", folder=HERE)]))


def fails_newly(row: Row, release: str, known: dict[str, Row]) -> bool:
    """Return whether a session has begun to fail: since this release was run before, or since the newest that was."""
    before = known.get(release) or known.get(max(known, key=number, default=""), {})
    return any(row[name] and not before.get(name) for name in row)


def tests_of(host: str) -> dict[str, str]:
    """Return the test of each session of a host."""
    found = {name: of.get(host) or of.get("*", "") for name, of in SESSIONS.items()}
    return {name: test for name, test in found.items() if test}


def run_release(host: str, version: str, known: Row) -> Row:
    """Return what becomes of the sessions of a host in a release.

    known: sessions that are not run again.
    """
    tests = tests_of(host)
    with tempfile.TemporaryDirectory(prefix="tailhook-matrix-") as folder:
        hosts = Path(folder, "tailhook", "hosts")  # where the tests look for them
        hosts.mkdir(parents=True)
        npm("install", f"{PACKAGES[host]}@{version}", folder=hosts)
        report = Path(folder, "report.xml")
        argv = [*namespace(), sys.executable, "-m", "pytest", "-q", "-n", PARALLEL, f"--junitxml={report}"]
        argv += ["-k", "claude" if host == "claude-code" else host]
        env = {**os.environ, "XDG_CACHE_HOME": folder, "TEST_HANGS_S": str(HANGS_S)}
        row: Row = {name: "not run" for name in tests if name not in known}
        log = LOGS / f"host-matrix-{host}-{version}.log"
        for _ in range(ATTEMPTS):
            failed = [str(HERE / tests[name]) for name in row if row[name]]
            if failed:
                with log.open("wb") as output:
                    subprocess.run([*argv, *failed], env=env, stdin=subprocess.DEVNULL, stdout=output, check=False)
                results = read_report(report)
                row = {name: results[tests[name].partition("::")[2]] if why else "" for name, why in row.items()}
    if not any(row.values()):
        log.unlink()
    return {name: {**known, **row}[name] for name in tests}


def read_report(path: Path) -> dict[str, str]:
    """Return, for each test of a report in JUnit's XML, the first line of its first failure, or ""."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        test = case.attrib["name"].partition("[")[0]
        messages = [
            one.attrib["message"].partition("\n")[0] for one in case if one.tag in ("failure", "error", "skipped")
        ]
        found[test] = found.get(test) or " ".join(messages)
    return found


# ---- the page ---------------------------------------------------------------------


def tables(results: dict[str, dict[str, Row]]) -> str:
    """Return the part of the page between its marks: a table for each host, newest release first."""
    parts = [BEGIN]
    for host, rows in sorted_rows(results).items():
        names = list(dict.fromkeys(name for row in rows.values() for name in row))
        parts += ["", f"### {host}", "", f"| release | {' | '.join(names)} |", f"|-|{'-|' * len(names)}"]
        for version, row in reversed(rows.items()):
            shown = ["" if name not in row else "no" if row[name] else "yes" for name in names]
            parts.append(f"| {version} | {' | '.join(shown)} |")
        firsts: dict[tuple[str, str], list[str]] = {}
        for version, name, why in differences(rows):
            firsts.setdefault((version, "fail" if why else "work"), []).append(name)
        parts += [""] * bool(firsts)
        parts += [
            f"- {version} is the first of these releases in which these {verb}: {', '.join(names)}"
            for (version, verb), names in firsts.items()
        ]
    return "\n".join([*parts, "", END])


def changes(results: dict[str, dict[str, Row]]) -> list[str]:
    """Return a line for each session that a release treats differently from the release before it."""
    return [
        f"{host} {version}, {name}: {why or 'works again'}"
        for host, rows in sorted_rows(results).items()
        for version, name, why in differences(rows)
    ]


def differences(rows: dict[str, Row]) -> list[tuple[str, str, str]]:
    """Return each session that a release treats differently from the release before it: release, session, result."""
    return [
        (version, name, why)
        for (_, before), (version, row) in pairwise(rows.items())
        for name, why in row.items()
        if bool(why) is not bool(before.get(name, why))
    ]


if __name__ == "__main__":
    sys.exit(main())
