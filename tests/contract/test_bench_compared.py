"""`tailhook bench` with another installation, or with figures that were kept."""

import itertools
import json
import shlex
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from support.bench_runs import QUICK
from support.host import SANITIZER, short_folder

from tailhook.bench.other import OtherError, printed_by
from tailhook.bench.rounds import run_rounds
from tailhook.cli.bench import forms_in, subjects_in
from tailhook.pool.installation import HOOK_ENTRY, real_interpreter

pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="the command starts hooks without a sanitizer's runtime")


def test_another_installation_is_measured_case_by_case(figures):
    code, rows = figures(*QUICK, "--case", "idle, active", "--against", sys.prefix)
    assert code == 0
    assert rows["idle, active", "cold"]["ratio_to_other"]["value"] > 0
    assert rows["idle, active", "warm"]["ratio_to_other"]["value"] > 0


@pytest.fixture
def old_environment(tmp_path):
    """Make an environment with a tailhook without a pool and with one form of the hook; return its folder."""
    python = tmp_path / "old" / "bin" / "python"
    python.parent.mkdir(parents=True)
    argv = json.dumps([real_interpreter(), "-I", "-S", HOOK_ENTRY, "idle"])
    python.write_text(
        f"""#!/bin/sh
case "$*" in
*hook-command*--cold*) echo "unrecognized arguments: --cold" >&2; exit 2 ;;
*hook-command*) echo '{argv}' ;;
*) echo "ModuleNotFoundError: No module named 'tailhook.pool'" >&2; exit 1 ;;
esac
"""
    )
    python.chmod(0o755)
    return python.parents[1]


def test_a_warm_hook_is_not_compared_with_a_cold_one(bench, old_environment):
    done = bench(*QUICK, "--json", "--case", "idle, active", "--against", str(old_environment))
    assert "only the cold forms are compared" in done.stderr
    rows = {row["form"]: row["ratio_to_other"] for row in json.loads(done.stdout)["rows"]}
    assert rows.pop("cold")["value"] > 0
    assert rows == {"warm": None}


def test_each_form_is_compared_with_the_same_form_of_the_other_installation():
    arguments = Namespace(hook=None, against=sys.prefix, against_command=None, size="10 KB", case="idle, active")
    arguments.machine = None
    with short_folder() as folder, forms_in(Path(folder), arguments) as forms:
        for attempt in itertools.count():
            Path(folder, str(attempt)).mkdir()
            cold, warm = subjects_in(Path(folder, str(attempt)), arguments, forms)
            run_rounds([cold, warm], 6)
            if not warm.unanswered():  # otherwise the workers were too late for most runs: the machine was busy
                break
    assert (cold.other, cold.others_answered) == (cold.argv, 0)
    assert warm.other[0] != warm.argv[0]
    assert 3 <= warm.others_answered <= 6


def test_an_environment_without_tailhook_is_an_error_in_one_line(bench, tmp_path):
    done = bench(*QUICK, "--case", "idle, active", "--against", str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "virtual environment" in done.stderr


@pytest.mark.parametrize("prints", ["", "{}", "[1]", "[]", '"x"', "no JSON", "[" * 10000])
def test_an_environment_that_prints_something_else_is_an_error_in_one_line(bench, old_environment, prints):
    (old_environment / "bin" / "python").write_text(f"#!/bin/sh\necho '{prints}'\n")
    done = bench(*QUICK, "--case", "idle, active", "--against", str(old_environment))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "does not print its hook command" in done.stderr


def test_an_environment_that_prints_more_before_is_measured(bench, tmp_path):
    python = tmp_path / "loud" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "a line of the site"\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    done = bench(*QUICK, "--json", "--case", "idle, active", "--against", str(tmp_path / "loud"))
    assert {row["form"]: row["ratio_to_other"] is None for row in json.loads(done.stdout)["rows"]} == {
        "cold": False,
        "warm": False,
    }


def test_an_environment_that_does_not_end_is_not_waited_for(old_environment, monkeypatch):
    (old_environment / "bin" / "python").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr("tailhook.bench.other.OTHER_TIMEOUT_S", 0.1)
    with pytest.raises(OtherError, match=r"did not end within 0\.1 s"):
        printed_by([str(old_environment / "bin" / "python")])


def test_figures_are_kept_and_compared(bench, tmp_path):
    kept, report = tmp_path / "kept.json", tmp_path / "report.md"
    case = (*QUICK, "--case", "ralph, active")
    assert bench(*case, "--save", str(kept), "--format", "markdown", "-o", str(report)).stdout == ""
    assert json.loads(kept.read_text())["schema"] == 1
    assert report.read_text().startswith("| hook |")
    done = bench(*case, "--compare", str(kept))
    assert done.returncode == 0
    assert "before" in done.stdout
    assert bench(*case, "--compare", str(report)).returncode == 1
    done = bench(*case, "--json", "--compare", str(kept))
    assert json.loads(done.stdout)["schema"] == 1
    assert "before" in done.stderr


SLOW = "python3 -c pass"
NAMED = ("--name", "hook", "--rounds", "12", "--size", "10 KB")


def test_a_hook_that_became_slower_fails_and_an_equal_one_passes(bench, tmp_path):
    kept = tmp_path / "kept.json"
    assert bench("--hook", "true", *NAMED, "--save", str(kept)).returncode == 0
    done = bench("--hook", SLOW, *NAMED, "--compare", str(kept), "--max-regression", "1.5")
    assert done.returncode == 1
    assert "tailhook: hook, Stop, 10 KB: " in done.stderr
    assert "times what it was before" in done.stderr
    again = bench("--hook", "true", *NAMED, "--compare", str(kept), "--max-regression", "30")
    assert (again.returncode, again.stderr) == (0, "")


def test_a_hook_that_is_slower_than_another_one_fails(bench):
    words = (*NAMED, "--max-regression", "1.5")
    done = bench("--hook", SLOW, "--against-command", "true", *words)
    assert done.returncode == 1
    assert "times the other hook" in done.stderr
    assert bench("--hook", "true", "--against-command", SLOW, *words).returncode == 0


def test_a_run_of_which_no_hook_is_in_the_earlier_one_does_not_pass(bench, tmp_path):
    kept = tmp_path / "kept.json"
    assert bench("--hook", "true", *NAMED, "--save", str(kept)).returncode == 0
    gate = (*QUICK, "--compare", str(kept), "--max-regression", "30")
    done = bench("--hook", "true", *gate)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tailhook: --max-regression: no hook of this run is in {kept}\n"
    both = ("--hook", "true", "--name", "hook", "--hook", "sh -c true", "--name", "new")
    done = bench(*both, "--rounds", "6", *gate[2:])
    assert done.returncode == 0
    assert f"tailhook: new, Stop, 10 KB: not in {kept}, so its change is not judged\n" in done.stderr
