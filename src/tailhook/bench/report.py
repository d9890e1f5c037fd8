"""The figures of a benchmark in the formats of other tools, and beside those of an earlier run."""

import json
import math
import os
import platform
import shlex
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import tailhook
from tailhook.bench.intervals import Estimate, change_since
from tailhook.bench.rounds import Limits, Subject, make_title
from tailhook.errors import TailhookError
from tailhook.exits import run_to_end
from tailhook.hook.answer import plain

LEGEND = "x bare, x true, x other: times bare Python (it starts and does nothing), /bin/true, and the other hook"
SCHEMA = 1  # of the JSON; it grows with each change that a reader must know
MAX_RATIO = 1e9  # read from a file; an integer may be too large for a float
BENCH_FORMATS = ("text", "json", "markdown", "bmf", "github", "hyperfine")


class SavedRunError(TailhookError):
    """A file of an earlier run cannot be used."""


def bench_facts(subjects: Sequence[Subject], limits: Limits, verdicts: Mapping[str, str]) -> dict[str, Any]:
    """Return all figures, with the facts about this computer and installation."""
    return {
        "schema": SCHEMA,
        "tailhook": tailhook.__version__,
        "commit": commit_of(Path(tailhook.__file__).parent),
        "python": f"{sys.implementation.name} {platform.python_version()}",
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "processor": processor_name(),
            "processors": os.cpu_count(),
        },
        "load": list(os.getloadavg()),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": [row_of(subject, limits, verdicts) for subject in subjects],
    }


def processor_name() -> str | None:
    """Return the name of the processor's model, None if it is not known."""
    if sys.platform == "darwin":
        words = run_to_end(["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"], text=True)
        return words.stdout.strip() or None
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def commit_of(package: Path) -> str | None:
    """Return the commit of the checkout that a package runs from, None outside of one.

    A package in an environment inside of a checkout is not part of the checkout.
    """
    found = ""
    for words in (["ls-files", "--error-unmatch", "__init__.py"], ["describe", "--always", "--dirty", "--abbrev=12"]):
        try:
            done = run_to_end(["git", "-C", package, *words], text=True)
        except OSError:
            return None
        if done.returncode:
            return None
        found = done.stdout.strip()
    return found or None


def row_of(subject: Subject, limits: Limits, verdicts: Mapping[str, str]) -> dict[str, Any]:
    """Return the figures of one hook."""
    return {
        "case": subject.name,
        "transcript": subject.transcript,
        "form": subject.form,
        "command": shlex.join(subject.argv) if subject.form == "command" else None,
        "rounds": len(subject.samples),
        "answered_by_worker": subject.answered if subject.form == "warm" else None,
        "median_ms": estimate_of(subject.median()),
        "p99_ms": estimate_of(subject.p99()),
        "cpu_ms": subject.cpu_ms(),
        "system_ms": subject.system_ms(),
        "instructions": subject.instructions,
        "instruction_ratio": subject.instruction_ratio(),
        "ratio_to_bare": estimate_of(subject.ratio(subject.bare_runs)),
        "undisturbed_ratio_to_bare": finite_estimate_of(subject.undisturbed_ratio(subject.bare_runs)),
        "ratio_to_true": estimate_of(subject.ratio(subject.true_runs)),
        "ratio_to_other": estimate_of(subject.ratio(subject.others)) if subject.others else None,
        "other": other_of(subject),
        "verdict": verdicts.get(subject.title) if any(limits) else None,
        "reasons": [words for verdict, words in limits.verdicts(subject) if verdict != "pass"],
        "wall_ms": subject.walls(),
        "exit_codes": [sample.exit_code for sample in subject.samples],
        "failed_runs": len(subject.failures()),
    }


def other_of(subject: Subject) -> dict[str, Any] | None:
    """Return the figures of the other hook in a comparison, None without one."""
    if not subject.others or subject.other is None:
        return None
    other = replace(subject, samples=subject.others)
    return {
        "command": shlex.join(subject.other),
        "median_ms": estimate_of(other.median()),
        "p99_ms": estimate_of(other.p99()),
        "cpu_ms": other.cpu_ms(),
        "system_ms": other.system_ms(),
        "instructions": None,
        "ratio_to_bare": estimate_of(other.ratio(subject.bare_runs)),
        "wall_ms": other.walls(),
        "exit_codes": [sample.exit_code for sample in subject.others],
    }


def estimate_of(found: Estimate) -> dict[str, float]:
    """Return an estimate for JSON."""
    return {"value": found.value, "low": found.low, "high": found.high}


def finite_estimate_of(found: Estimate) -> dict[str, float] | None:
    """Return an estimate for JSON, None if its divisor is 0."""
    return estimate_of(found) if found.high < math.inf else None


def saved_estimate(found: Mapping[str, float] | None) -> Estimate | None:
    """Return an estimate of JSON, None if there is none."""
    return Estimate(**found) if found else None


def answered_words(row: Mapping[str, Any]) -> str:
    """Return how many runs of a warm hook a worker answered, if some were cold, else ""."""
    answered = row["answered_by_worker"]
    if answered is None or answered == row["rounds"]:
        return ""
    return f" (a worker answered {answered} of {row['rounds']} runs)"


def title_of(row: Mapping[str, Any]) -> str:
    """Return the title of a row, as of its `Subject`."""
    return make_title(row["case"], row["transcript"], row["form"])


def measured(facts: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the title and the figures of every measured hook, also of the other hooks in comparisons."""
    for row in facts["rows"]:
        yield title_of(row), row
        if row["other"]:
            yield f"{title_of(row)}, other", row["other"]


# ---- formats -------------------------------------------------------------------


def format_figures(format_name: str, facts: Mapping[str, Any]) -> str:
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
    titles = ["hook", "median", "p99", "cpu", "x bare", "x true", *(["x other"] if has_other else [])]
    table = [[*titles, *(["instructions, x bare"] if are_instructions_counted(facts) else [])]]
    for row in facts["rows"]:
        cells = [title_of(row), f"{row['median_ms']['value']:.2f} ms", f"{row['p99_ms']['value']:.2f} ms"]
        cells += [f"{row['cpu_ms']:.2f} ms", with_interval(row["ratio_to_bare"]), with_interval(row["ratio_to_true"])]
        if has_other:
            cells.append(with_interval(row["ratio_to_other"]) if row["ratio_to_other"] else "")
        if row["instruction_ratio"] is not None:
            cells.append(f"{row['instruction_ratio']:.3f}")
        table.append(cells)
    head, *lines = align(table)
    lines = [line + answered_words(row) for line, row in zip(lines, facts["rows"], strict=True)]
    about = f"{facts['python']}, tailhook {facts['tailhook']}, load {facts['load'][0]:.1f}"
    return "\n".join([about, LEGEND, "", head, *lines])


def align(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines: the first column on the left, the others on the right, two blanks apart."""
    widths = [max(map(len, column)) for column in zip_longest(*table, fillvalue="")]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])  # a row may have fewer cells
        for row in table
    ]


def are_instructions_counted(facts: Mapping[str, Any]) -> bool:
    """Return whether the instructions of a hook were counted."""
    return any(row["instruction_ratio"] is not None for row in facts["rows"])


def with_interval(found: Mapping[str, float]) -> str:
    """Return a figure with its interval."""
    return f"{found['value']:.2f} ({found['low']:.2f}-{found['high']:.2f})"


def as_markdown(facts: Mapping[str, Any]) -> str:
    """Return a table in Markdown, as for a pull request or a job's summary."""
    has_other = any(row["ratio_to_other"] for row in facts["rows"])
    titles = ["hook", "median", "p99", "processor time", "beside bare Python", "beside `/bin/true`"]
    titles += ["beside the other hook"] if has_other else []
    titles += ["instructions, beside bare Python"] if are_instructions_counted(facts) else []
    lines = [f"| {' | '.join([*titles, 'verdict'])} |", f"|-|{'-:|' * (len(titles) - 1)}-|"]
    for row in facts["rows"]:
        cells = [(title_of(row) + answered_words(row)).replace("|", "\\|")]
        cells += [f"{milliseconds:.2f} ms" for milliseconds in (row["median_ms"]["value"], row["p99_ms"]["value"])]
        cells += [f"{row['cpu_ms']:.2f} ms", with_interval(row["ratio_to_bare"]), with_interval(row["ratio_to_true"])]
        if has_other:
            cells.append(with_interval(row["ratio_to_other"]) if row["ratio_to_other"] else "")
        if are_instructions_counted(facts):
            cells.append("" if row["instruction_ratio"] is None else f"{row['instruction_ratio']:.3f}")
        lines.append(f"| {' | '.join([*cells, row['verdict'] or ''])} |")
    about = f"{facts['python']}, tailhook {facts['tailhook']}, {facts['date']}, load {facts['load'][0]:.1f}"
    reasons = [f"- {title_of(row)}: {reason}" for row in facts["rows"] for reason in row["reasons"]]
    return "\n".join([*lines, "", f"{about}. In brackets: the 95 % interval.", *([""] if reasons else []), *reasons])


def as_bmf(facts: Mapping[str, Any]) -> str:
    """Return Bencher Metric Format: nanoseconds by hook."""
    found = {}
    for title, row in measured(facts):
        names = {"value": "value", "low": "lower_value", "high": "upper_value"}
        latency = {names[end]: number * 1e6 for end, number in row["median_ms"].items()}
        found[title] = {"latency": latency}
        if row["instructions"] is not None:
            found[title]["instructions"] = {"value": row["instructions"]}
    return json.dumps(found, indent=2)


def as_github(facts: Mapping[str, Any]) -> str:
    """Return the list of github-action-benchmark's tool `customSmallerIsBetter`."""
    return json.dumps(
        [
            {
                "name": title,
                "unit": "times bare Python",
                "value": row["ratio_to_bare"]["value"],
                "range": f"{row['ratio_to_bare']['low']:.3f} - {row['ratio_to_bare']['high']:.3f}",
                "extra": f"median {row['median_ms']['value']:.2f} ms, p99 {row['p99_ms']['value']:.2f} ms",
            }
            for title, row in measured(facts)
        ],
        indent=2,
    )


def as_hyperfine(facts: Mapping[str, Any]) -> str:
    """Return the format of `hyperfine --export-json`: seconds by command."""
    results = []
    for title, row in measured(facts):
        times = [wall / 1000 for wall in row["wall_ms"]]
        results.append(
            {
                "command": title,
                "mean": statistics.fmean(times),
                "stddev": statistics.stdev(times) if len(times) > 1 else None,
                "median": statistics.median(times),
                "user": max(0.0, row["cpu_ms"] - row["system_ms"]) / 1000,
                "system": row["system_ms"] / 1000,
                "min": min(times),
                "max": max(times),
                "times": times,
                "exit_codes": row["exit_codes"],
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
    except RecursionError:
        raise SavedRunError(f"{path} is not a file of `tailhook bench --save`: it is nested too deeply") from None
    if not isinstance(found, dict) or not isinstance(found.get("rows"), list):
        raise SavedRunError(f"{path} is not a file of `tailhook bench --save`")
    if (schema := found.get("schema")) != SCHEMA:
        shown = schema if isinstance(schema, int) else "that is not a whole number"
        raise SavedRunError(f"{path} has a schema {shown}; this version reads {SCHEMA}")
    for number, row in enumerate(found["rows"], 1):
        if not is_saved_row(row):
            raise SavedRunError(f"{path}: row {number} is not one that `tailhook bench --save` writes")
    return found


def is_saved_row(row: object) -> bool:
    """Return whether a row has the members that `compare_runs` and `note_earlier_run` read."""
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("case", "transcript", "form")):
        return False
    undisturbed = row.get("undisturbed_ratio_to_bare")  # older versions did not save it
    return is_saved_ratio(row.get("ratio_to_bare")) and (undisturbed is None or is_saved_ratio(undisturbed))


def is_saved_ratio(ratio: object) -> bool:
    """Return whether a value from a file is a ratio with its interval."""
    if not isinstance(ratio, dict) or ratio.keys() != {"low", "value", "high"}:
        return False
    low, value, high = ratio["low"], ratio["value"], ratio["high"]
    are_numbers = all(isinstance(end, float | int) and not isinstance(end, bool) for end in (low, value, high))
    return are_numbers and 0 < low <= value <= high < MAX_RATIO


def compare_runs(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a table of the changes since an earlier run: a hook's ratio to bare Python, then and now.

    A change is within the noise by the rule of `RatioChange.is_noise`.
    """
    known = rows_by_title(before)
    table = [["hook", "before", "now", "change"]]
    notes = [""]
    for row in now["rows"]:
        name = plain(title_of(row))
        old = known.pop(name, None)
        new_ratio = row["ratio_to_bare"]
        if old is None:
            table.append([name, "", with_interval(new_ratio), "new"])
            notes.append("")
            continue
        undisturbed = [saved_estimate(one.get("undisturbed_ratio_to_bare")) for one in (old, row)]
        change = change_since(Estimate(**old["ratio_to_bare"]), Estimate(**new_ratio), *undisturbed)
        table.append(
            [name, with_interval(old["ratio_to_bare"]), with_interval(new_ratio), f"{change.wall.value - 1:+.1%}"]
        )
        notes.append(" (within the noise)" if change.is_noise else "")
    table += [[name, with_interval(row["ratio_to_bare"]), "", "gone"] for name, row in known.items()]
    return [line + note for line, note in zip_longest(align(table), notes, fillvalue="")]


def rows_by_title(saved: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the rows of an earlier run by their titles. saved: from a file; it may contain anything."""
    return {plain(title_of(row)): row for row in saved["rows"]}


def note_earlier_run(subjects: Sequence[Subject], saved: Mapping[str, Any]) -> list[Subject]:
    """Give subjects their ratios of an earlier run, and return the subjects that it lacks."""
    known = rows_by_title(saved)
    new = []
    for subject in subjects:
        row = known.get(plain(subject.title))
        if row is None:
            new.append(subject)
            continue
        subject.before = Estimate(**row["ratio_to_bare"])
        subject.undisturbed_before = saved_estimate(row.get("undisturbed_ratio_to_bare"))
    return new
