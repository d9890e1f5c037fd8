"""The figures of a benchmark in each format, and beside those of an earlier run."""

import json
import subprocess

import pytest
from support.bench_runs import add_rounds, subject_of

from tailhook.bench.intervals import FAIL
from tailhook.bench.report import (
    SCHEMA,
    SavedRunError,
    bench_facts,
    commit_of,
    compare_runs,
    format_figures,
    read_saved,
)
from tailhook.bench.rounds import Limits, Subject


@pytest.fixture
def facts():
    subjects = [
        subject_of("idle | odd", [12.0, 13.0, 12.5], [10.0] * 3),
        subject_of("ralph", [20.0, 20.0, 20.0, 21.0, 22.0, 22.0, 22.0], [10.0] * 7),
    ]
    limits = Limits(1.35)
    return bench_facts(subjects, limits, {one.title: limits.verdict(one) for one in subjects})


def test_the_json_has_all_figures_and_a_schema(facts):
    found = json.loads(format_figures("json", facts))
    assert found["schema"] == SCHEMA
    assert {"tailhook", "commit", "python", "machine", "load", "date", "rows"} < set(found)
    row = found["rows"][1]
    assert (row["case"], row["verdict"], row["rounds"]) == ("ralph", "fail", 7)
    assert row["ratio_to_bare"] == {"value": 2.1, "low": 2.0, "high": 2.2}
    assert "2.10 times bare Python (2.00 to 2.20), the limit is 1.35" in row["reasons"]


def test_other_tools_get_their_format(facts):
    bmf = json.loads(format_figures("bmf", facts))
    assert bmf["ralph, 10 KB, cold"]["latency"] == {"value": 21e6, "lower_value": 20e6, "upper_value": 22e6}
    github = json.loads(format_figures("github", facts))
    assert {"name", "unit", "value", "range", "extra"} == set(github[0])
    hyperfine = json.loads(format_figures("hyperfine", facts))["results"][1]
    assert (hyperfine["user"], hyperfine["system"]) == (pytest.approx(0.017), pytest.approx(0.004))
    assert (hyperfine["median"], hyperfine["min"], hyperfine["times"]) == (
        0.021,
        0.02,
        [0.02, 0.02, 0.02, 0.021, 0.022, 0.022, 0.022],
    )
    markdown = format_figures("markdown", facts).splitlines()
    assert markdown[2].startswith("| idle \\| odd, 10 KB, cold | 12.50 ms |")
    assert markdown[3].endswith("| fail |")
    assert "ralph, 10 KB, cold" in format_figures("text", facts)


def test_a_hook_that_others_are_compared_with_is_in_each_format():
    one = subject_of("ralph", [20.0] * 8, [10.0] * 8)
    one.other = ["other", "hook"]
    one.others = [sample._replace(wall=40.0) for sample in one.samples]
    facts = bench_facts([one], Limits(1.35), {one.title: FAIL})
    assert facts["rows"][0]["other"]["command"] == "other hook"
    assert facts["rows"][0]["other"]["median_ms"]["value"] == 40.0
    markdown = format_figures("markdown", facts).splitlines()
    assert "| beside the other hook | verdict |" in markdown[0]
    assert "| 0.50 (0.50-0.50) | fail |" in markdown[2]
    assert markdown[-1].startswith("- ralph, 10 KB, cold: ")
    assert "x other" in format_figures("text", facts)
    title = "ralph, 10 KB, cold, other"
    assert json.loads(format_figures("bmf", facts))[title]["latency"]["value"] == 40e6
    assert [row["value"] for row in json.loads(format_figures("github", facts)) if row["name"] == title] == [4.0]
    hyperfine = json.loads(format_figures("hyperfine", facts))["results"]
    assert [row["median"] for row in hyperfine if row["command"] == title] == [0.04]
    assert hyperfine[0]["exit_codes"] == [0] * 8


@pytest.mark.parametrize("format_name", ["text", "markdown"])
def test_a_table_has_every_figure_of_a_hook(facts, format_name):
    head = "instructions, x bare" if format_name == "text" else "instructions, beside bare Python"
    assert head not in format_figures(format_name, facts)
    first, other = facts["rows"]
    first |= {"instructions": 120, "instruction_ratio": 1.2}
    words = format_figures(format_name, facts)
    assert head in words
    line = next(line for line in words.splitlines() if first["case"].partition(" ")[0] in line and "12.50 ms" in line)
    figures = ["12.50 ms", "13.00 ms", "1.25 (1.20-1.30)", "12.50 (12.00-13.00)", "1.200"]
    assert [figure for figure in figures if figure in line] == figures
    assert other["instruction_ratio"] is None


def test_an_earlier_run_is_compared(facts, tmp_path):
    path = tmp_path / "before.json"
    path.write_text(format_figures("json", facts))
    before = read_saved(str(path))
    subjects = [subject_of("ralph", [30.0] * 3, [10.0] * 3), subject_of("triage", [5.0] * 3, [10.0] * 3)]
    now = bench_facts(subjects, Limits(), {})
    lines = compare_runs(before, now)
    assert "+42.9%" in lines[1]
    assert lines[2].endswith("new")
    assert lines[3].endswith("gone")
    assert "within the noise" in compare_runs(before, before)[1]


@pytest.mark.parametrize(
    ("before", "now", "is_noise"),
    [((1.0, 1.0), (1.5, 1.5), False), ((1.0, 1.0), (1.5, 1.0), True), ((1.0, 1.0), (1.0, 1.5), True)],
)
@pytest.mark.parametrize("has_undisturbed", [True, False])
def test_a_change_is_shown_as_noise_by_the_rule_that_judges_it(before, now, is_noise, has_undisturbed):
    """of each run: its ratio to bare Python, and the same undisturbed."""
    rows = [
        {
            "case": "idle",
            "transcript": "10 KB",
            "form": "cold",
            "ratio_to_bare": {"value": wall, "low": wall * 0.99, "high": wall * 1.01},
            "undisturbed_ratio_to_bare": {"value": own, "low": own * 0.99, "high": own * 1.01}
            if has_undisturbed
            else None,
        }
        for wall, own in (before, now)
    ]
    lines = compare_runs(*({"rows": [row]} for row in rows))
    assert ("within the noise" in lines[1]) == (is_noise if has_undisturbed else before[0] == now[0])


def test_names_of_an_earlier_run_are_printed_without_their_control_characters(facts):
    row = {**facts["rows"][0], "case": "\x1b[31mred\nline", "transcript": "\x9b", "form": "\x07"}
    lines = compare_runs({"rows": [row]}, facts)
    assert lines[-1].startswith("\\x1b[31mred\\nline, \\x9b, \\x07")


def test_hooks_of_two_names_are_not_compared_and_those_of_one_name_are_whatever_they_run():
    def run(name, argv, time):
        one = Subject(f"{name}, Stop", "10 KB", "command", argv, None)
        add_rounds(one, [time], [10.0])
        return bench_facts([one], Limits(), {})

    before, now = run("a", ["python3", "a b.py"], 20.0), run("b", ["node", "b.js"], 30.0)
    assert (before["rows"][0]["command"], before["rows"][0]["transcript"]) == ("python3 'a b.py'", "10 KB")
    assert "+50.0%" in compare_runs(before, run("a", ["node", "b.js"], 30.0))[1]
    lines = compare_runs(before, now)
    assert [line.split()[-1] for line in lines] == ["change", "new", "gone"]


def test_columns_of_a_table_never_run_together():
    rows = [subject_of(name=name, times=[time] * 6, bare=[0.01, 10.0] * 3) for name, time in (("a", 1.0), ("b", 9e4))]
    facts = bench_facts(rows, Limits(), {})
    for lines in (format_figures("text", facts).splitlines()[3:], compare_runs(facts, facts)):
        assert len({len(line.removesuffix(" (within the noise)")) for line in lines}) == 1
        assert all(f"){digit}" not in line for line in lines for digit in "0123456789")


def test_the_json_has_the_ratio_that_the_limit_on_instructions_judges():
    one = subject_of(times=[12.0], bare=[10.0])
    assert bench_facts([one], Limits(), {})["rows"][0]["instruction_ratio"] is None
    one.instructions, one.bare_instructions = 150, 100
    assert bench_facts([one], Limits(), {})["rows"][0]["instruction_ratio"] == 1.5
    assert bench_facts([one], Limits(), {})["rows"][0]["command"] is None


RATIO = '{"value": 1.2, "low": 1.1, "high": %s}'
ROW = '{"schema": 1, "rows": [{"case": "idle", "transcript": "", "form": "cold", "ratio_to_bare": %s}]}'


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", '{"schema": 99, "rows": []}', "nonsense", "\udcff"),
        *('{"schema": 1, "rows": [{}]}', '{"schema": 1, "rows": [7]}', ROW % "null", ROW % 1.2),
        *(ROW % (RATIO % end) for end in ('"x"', "null", "NaN", "0", "true")),
        pytest.param(ROW % (RATIO % ("1" + "0" * 400)), id="a large number"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param(f'{{"schema": {"[" * 400}1{"]" * 400}, "rows": []}}', id="a deep schema"),
    ],
)
def test_a_file_that_is_not_of_an_earlier_run_is_refused(tmp_path, content):
    path = tmp_path / "before.json"
    path.write_text(content, errors="surrogateescape")
    with pytest.raises(SavedRunError, match=r"before\.json"):
        read_saved(str(path))


def test_the_commit_is_that_of_the_packages_own_checkout(tmp_path):
    checkout = tmp_path / "checkout"
    ours, installed = checkout / "src" / "tailhook", checkout / ".venv" / "tailhook"
    git = ["git", "-C", checkout, "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for package in (ours, installed):
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    assert commit_of(ours) is None
    subprocess.run([*git, "add", ours], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "x"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert head.startswith(commit_of(ours))
    assert commit_of(installed) is None
