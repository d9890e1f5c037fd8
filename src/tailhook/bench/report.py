"""The figures of a benchmark in the formats of other tools, and beside those of an earlier run."""

import json
import math
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import tailhook
from tailhook.bench.intervals import Estimate
from tailhook.bench.rounds import Limits, Subject
from tailhook.errors import TailhookError

SCHEMA = 1  # of the JSON; a change that a reader must know makes it larger
BENCH_FORMATS = ("text", "json", "markdown", "bmf", "github", "hyperfine")


class SavedRunError(TailhookError):
    """A file of an earlier run cannot be used."""


def bench_facts(subjects: Sequence[Subject], limits: Limits, verdicts: Mapping[str, str]) -> dict[str, Any]:
    """Return all figures, with what they were measured on."""
    return {
        "schema": SCHEMA,
        "tailhook": tailhook.__version__,
        "commit": commit_of(Path(tailhook.__file__).parent),
        "python": f"{sys.implementation.name} {platform.python_version()}",
        "machine": {"system": platform.system(), "processor": platform.machine(), "processors": os.cpu_count()},
        "load": list(os.getloadavg()),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "rows": [row_of(subject, limits, verdicts) for subject in subjects],
    }


def commit_of(package: Path) -> str | None:
    """Return the commit of the checkout that a package runs from, None outside of one.

    A package in an environment that is inside of a checkout is not part of it.
    """
    found = ""
    for words in (["ls-files", "--error-unmatch", "__init__.py"], ["describe", "--always", "--dirty", "--abbrev=12"]):
        try:
            done = subprocess.run(  # noqa: S603 - with a folder of our own
                ["git", "-C", package, *words],  # noqa: S607
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError:
            return None
        if done.returncode:
            return None
        found = done.stdout.strip()
    return found or None


def row_of(subject: Subject, limits: Limits, verdicts: Mapping[str, str]) -> dict[str, Any]:
    """Return the figures of one hook."""
    row: dict[str, Any] = {
        "case": subject.name,
        "transcript": subject.transcript,
        "form": subject.form,
        "rounds": len(subject.samples),
        "answered_by_worker": subject.answered if subject.form == "warm" else None,
        "median_ms": estimate_of(subject.median()),
        "p99_ms": estimate_of(subject.p99()),
        "cpu_ms": subject.cpu_ms(),
        "instructions": subject.instructions,
        "ratio_to_bare": estimate_of(subject.ratio(subject.bare)),
        "ratio_to_true": estimate_of(subject.ratio(subject.nothing)),
        "ratio_to_other": None,
        "verdict": verdicts.get(subject.title) if any(limits) else None,
        "reasons": [words for verdict, words in limits.verdicts(subject) if verdict != "pass"],
        "wall_ms": subject.walls(),
        "failed_runs": len(subject.failures()),
    }
    if subject.others:
        row["ratio_to_other"] = estimate_of(subject.ratio([sample.wall for sample in subject.others]))
    return row


def estimate_of(found: Estimate) -> dict[str, float]:
    """Return an estimate for JSON."""
    return {"value": found.value, "low": found.low, "high": found.high}


def answered_words(row: Mapping[str, Any]) -> str:
    """Return how many runs of a warm hook a worker answered, if some were cold, else ""."""
    answered = row["answered_by_worker"]
    if answered is None or answered == row["rounds"]:
        return ""
    return f" (a worker answered {answered} of {row['rounds']} runs)"


def title_of(row: Mapping[str, Any]) -> str:
    """Return the name of a row for people and for other tools."""
    form = "" if row["form"] == "command" else row["form"]
    return ", ".join(filter(None, (row["case"], row["transcript"], form)))


# ---- formats -------------------------------------------------------------------


def write_as(format_name: str, facts: Mapping[str, Any]) -> str:
    """Return the figures in a format.  format_name: one of BENCH_FORMATS."""
    return {
        "text": as_text,
        "json": lambda facts: json.dumps(facts, indent=2, allow_nan=False),
        "markdown": as_markdown,
        "bmf": as_bmf,
        "github": as_github,
        "hyperfine": as_hyperfine,
    }[format_name](facts)


def as_text(facts: Mapping[str, Any]) -> str:
    """Return a table for a terminal."""
    has_other = any(row["ratio_to_other"] for row in facts["rows"])
    head = f"{'hook':<52}{'median':>11}{'p99':>11}{'cpu':>10}{'x bare':>21}{'x true':>8}"
    lines = [
        f"{facts['python']}, tailhook {facts['tailhook']}, load {facts['load'][0]:.1f}",
        "",
        head + (f"{'x other':>21}" if has_other else ""),
    ]
    for row in facts["rows"]:
        bare, other = row["ratio_to_bare"], row["ratio_to_other"]
        words = f"{title_of(row):<52}{row['median_ms']['value']:>8.2f} ms{row['p99_ms']['value']:>8.2f} ms"
        words += f"{row['cpu_ms']:>7.2f} ms{with_interval(bare):>21}{row['ratio_to_true']['value']:>8.2f}"
        words += f"{with_interval(other):>21}" if other else ""
        lines.append(words + answered_words(row))
    return "\n".join(lines)


def with_interval(found: Mapping[str, float]) -> str:
    """Return a figure with its interval."""
    return f"{found['value']:.2f} ({found['low']:.2f}-{found['high']:.2f})"


def as_markdown(facts: Mapping[str, Any]) -> str:
    """Return a table in Markdown, as for a pull request or a job's summary."""
    lines = ["| hook | median | p99 | beside bare Python | verdict |", "|-|-:|-:|-:|-|"]
    for row in facts["rows"]:
        times = f"{row['median_ms']['value']:.2f} ms | {row['p99_ms']['value']:.2f} ms"
        name = (title_of(row) + answered_words(row)).replace("|", "\\|")
        lines.append(f"| {name} | {times} | {with_interval(row['ratio_to_bare'])} | {row['verdict'] or ''} |")
    about = f"{facts['python']}, tailhook {facts['tailhook']}, {facts['date']}, load {facts['load'][0]:.1f}"
    return "\n".join([*lines, "", f"{about}. In brackets: the 95 % interval."])


def as_bmf(facts: Mapping[str, Any]) -> str:
    """Return Bencher Metric Format: nanoseconds by hook."""
    found = {}
    for row in facts["rows"]:
        names = {"value": "value", "low": "lower_value", "high": "upper_value"}
        latency = {names[end]: number * 1e6 for end, number in row["median_ms"].items()}
        found[title_of(row)] = {"latency": latency}
        if row["instructions"] is not None:
            found[title_of(row)]["instructions"] = {"value": row["instructions"]}
    return json.dumps(found, indent=2)


def as_github(facts: Mapping[str, Any]) -> str:
    """Return the list of github-action-benchmark's tool `customSmallerIsBetter`."""
    return json.dumps(
        [
            {
                "name": title_of(row),
                "unit": "times bare Python",
                "value": row["ratio_to_bare"]["value"],
                "range": f"{row['ratio_to_bare']['low']:.3f} - {row['ratio_to_bare']['high']:.3f}",
                "extra": f"median {row['median_ms']['value']:.2f} ms, p99 {row['p99_ms']['value']:.2f} ms",
            }
            for row in facts["rows"]
        ],
        indent=2,
    )


def as_hyperfine(facts: Mapping[str, Any]) -> str:
    """Return what `hyperfine --export-json` writes: seconds by command."""
    results = []
    for row in facts["rows"]:
        times = [wall / 1000 for wall in row["wall_ms"]]
        results.append(
            {
                "command": title_of(row),
                "mean": statistics.fmean(times),
                "stddev": statistics.stdev(times) if len(times) > 1 else None,
                "median": statistics.median(times),
                "user": row["cpu_ms"] / 1000,
                "system": 0.0,
                "min": min(times),
                "max": max(times),
                "times": times,
            }
        )
    return json.dumps({"results": results}, indent=2)


# ---- an earlier run --------------------------------------------------------------


def read_saved(path: str) -> dict[str, Any]:
    """Return the figures that `--save` wrote. Raises SavedRunError, and OSError if the file cannot be read."""
    try:
        found = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise SavedRunError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("rows"), list):
        raise SavedRunError(f"{path} is not a file of `tailhook bench --save`")
    if found.get("schema") != SCHEMA:
        raise SavedRunError(f"{path} has the schema {found.get('schema')!r}; this version reads {SCHEMA}")
    for number, row in enumerate(found["rows"], 1):
        if not is_saved_row(row):
            raise SavedRunError(f"{path}: row {number} is not one that `tailhook bench --save` writes")
    return found


def is_saved_row(row: object) -> bool:
    """Return whether a row has what `compare_runs` reads."""
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("case", "transcript", "form")):
        return False
    ratio = row.get("ratio_to_bare")
    ends = [ratio.get(end) for end in ("low", "value", "high")] if isinstance(ratio, dict) else [None]
    return all(isinstance(end, float | int) and not isinstance(end, bool) and 0 < end < math.inf for end in ends)


def compare_runs(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a table of what has changed since an earlier run: a hook's ratio to bare Python, then and now.

    A change counts if the two intervals do not touch.
    """
    known = {title_of(row): row for row in before["rows"]}
    lines = [f"{'hook':<52}{'before':>21}{'now':>21}{'change':>10}"]
    for row in now["rows"]:
        old = known.pop(title_of(row), None)
        new_ratio = row["ratio_to_bare"]
        if old is None:
            lines.append(f"{title_of(row):<52}{'':>21}{with_interval(new_ratio):>21}{'new':>10}")
            continue
        ratio = old["ratio_to_bare"]
        change = new_ratio["value"] / ratio["value"] - 1
        is_clear = new_ratio["low"] > ratio["high"] or new_ratio["high"] < ratio["low"]
        lines.append(
            f"{title_of(row):<52}{with_interval(ratio):>21}{with_interval(new_ratio):>21}"
            f"{change:>+9.1%}{'' if is_clear else ' (within the noise)'}"
        )
    lines += [f"{name:<52}{with_interval(row['ratio_to_bare']):>21}{'':>21}{'gone':>10}" for name, row in known.items()]
    return lines
