"""Turn a run of the benchmarks into a page of tables, and plot the comparisons for docs/performance.md.

usage: report.py RUN.json RESULTS_FOLDER
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

PLOTTED = ("all_lines_newest_first", "code_of_assistant_prose", "literals_40_False_0", "whole_scan")
NOT_NAMED = {"engine", "published"}  # parameters that are not in a comparison's name
OURS, PEER = "#2f855a", "#9aa7b3"


class Row(NamedTuple):
    """What was measured of one engine.

    seconds, cpu_seconds: of one run.  rate: bytes in a second.  None: unknown.
    """

    engine: str
    seconds: float
    rate: float | None
    cpu_seconds: float | None


def main() -> None:
    """Read the run, write `README.md` and the plots."""
    run, results = Path(sys.argv[1]), Path(sys.argv[2])
    facts = json.loads(run.read_text())
    results.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Benchmarks",
        "",
        f"{facts['datetime'][:10]}, {computer(facts['machine_info'])}; `make bench`.",
        "Medians, unless a table has a note; within one table everything was measured in one run.",
    ]
    lines += sections(facts["benchmarks"])
    for name, rows in comparisons(facts["benchmarks"]).items():
        if name in PLOTTED:
            plot(name, rows, results / f"{name}.svg")
    (results / "README.md").write_text("\n".join(lines) + "\n")
    sys.stdout.write("\n".join(lines) + "\n")


def computer(machine: dict) -> str:
    """Return the processor and the interpreter of the run. Another computer may write the page."""
    processor = machine["cpu"].get("brand_raw") or machine["machine"]
    return f"{processor} ({machine['cpu']['count']} cores), CPython {machine['python_version']}"


def sections(benchmarks: list[dict]) -> list[str]:
    """Return the lines of all tables, in the order in which they were measured."""
    compared = comparisons(benchmarks)
    lines: list[str] = []
    for one in benchmarks:
        name = comparison_of(one)
        own = one["extra_info"].get("table")
        if own is None and name not in compared:
            continue  # another row of it came before
        lines += ["", f"## {name.replace('_', ' ')}", ""]
        if own is None:
            lines += table(compared.pop(name))
        else:
            lines += [one["extra_info"]["note"], "", *own_table(own)]
    return lines


def own_table(rows: list[list[str]]) -> list[str]:
    """Return the Markdown table of a benchmark that measures several things in turns. Its rows keep their order.

    rows: the head first.
    """
    aligned = ["-:" if cell[:1].isdigit() or cell[:1] == "-" else "-" for cell in rows[1]]
    return (
        [f"| {' | '.join(row)} |" for row in rows[:1]]
        + [f"|{'|'.join(aligned)}|"]
        + [f"| {' | '.join(row)} |" for row in rows[1:]]
    )


def comparison_of(benchmark: dict) -> str:
    """Return the name of the comparison that a benchmark belongs to.

    A comparison is a test function with the values of its parameters, except the engine.
    """
    name = benchmark["name"].removeprefix("test_").partition("[")[0]
    rest = [str(value) for key, value in (benchmark["params"] or {}).items() if key not in NOT_NAMED]
    return re.sub(r"[^\w.]+", "_", "_".join([name, *rest])).strip("_")


def comparisons(benchmarks: list[dict]) -> dict[str, list[Row]]:
    """Return the rows of each comparison, fastest first. Benchmarks with a table of their own are left out."""
    found = defaultdict(list)
    for one in benchmarks:
        if "table" in one["extra_info"]:
            continue
        parameters = one["params"] or {}
        engine = parameters.get("engine", one["name"])
        engine = engine if isinstance(engine, str) else one["param"]
        engine = one["param"] if parameters.keys() <= NOT_NAMED and one["param"] else engine
        seconds = one["stats"]["median"]
        size = one["extra_info"].get("bytes")
        found[comparison_of(one)].append(
            Row(str(engine), seconds, size / seconds if size else None, one["extra_info"].get("cpu_seconds"))
        )
    return {name: sorted(rows, key=lambda row: row.seconds) for name, rows in found.items()}


def table(rows: list[Row]) -> list[str]:
    """Return the rows as a Markdown table; its last column compares each engine with tailhook."""
    ours = next((row.seconds for row in rows if row.engine.startswith("tailhook")), None)
    has_processor_time = any(row.cpu_seconds for row in rows)
    lines = ["| engine | time | processor time | throughput | tailhook is |", "|-|-:|-:|-:|-:|"]
    for engine, seconds, rate, cpu_seconds in rows:
        throughput = f"{rate / 1e9:.2f} GB/s" if rate and rate >= 1e9 else f"{rate / 1e6:.0f} MB/s" if rate else ""
        beside = f"{seconds / ours:.2f} x" if ours and not engine.startswith("tailhook") else ""
        used = f"{cpu_seconds * 1e3:.2f} ms" if cpu_seconds else ""
        lines.append(f"| {engine} | {seconds * 1e3:.2f} ms | {used} | {throughput} | {beside} |")
    return lines if has_processor_time else [without_column(line, 3) for line in lines]


def without_column(line: str, number: int) -> str:
    """Return a line of a Markdown table without one of its columns. The first column is 1."""
    cells = line.split("|")
    return "|".join([*cells[:number], *cells[number + 1 :]])


def plot(name: str, rows: list[Row], path: Path) -> None:
    """Draw one horizontal bar for each engine: throughput if it is known, otherwise time."""
    import matplotlib as mpl  # here, so that tests of the tables need not have it

    mpl.use("svg")
    from matplotlib import pyplot as plt  # after the backend is chosen

    by_rate = all(row.rate for row in rows)
    values = [row.rate / 1e9 if by_rate and row.rate else row.seconds * 1e3 for row in rows]
    engines = [row.engine for row in rows]
    figure, axes = plt.subplots(figsize=(7, 0.7 + 0.42 * len(rows)))
    bars = axes.barh(engines, values, color=[OURS if engine.startswith("tailhook") else PEER for engine in engines])
    axes.bar_label(bars, fmt="%.2f", padding=4)
    axes.set_xlabel("GB/s" if by_rate else "milliseconds")
    axes.set_title(name.replace("_", " "), loc="left", fontsize=11)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.12)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
