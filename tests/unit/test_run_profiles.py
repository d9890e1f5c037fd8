"""The part of the work that a run does: its Hypothesis profile, and a part of the tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.long_runs import in_part

TESTS = Path(__file__).parents[1]
PROBE = """
from hypothesis import settings

def pytest_collection_finish(session):
    one = settings.default
    print("PROFILE", one.max_examples, one.derandomize, one.deadline)
"""
NOT_TAKEN_OVER = ("CI", "TAILHOOK_FUZZ", "TAILHOOK_PART")


@pytest.fixture
def collect(tmp_path):
    """Return a function that collects this file's tests with plugins and variables."""
    (tmp_path / "probe.py").write_text(PROBE)

    def collect(*plugins, **variables):
        env = {name: value for name, value in os.environ.items() if name not in NOT_TAKEN_OVER}
        # Other plugins than the project's own take seconds to import.
        env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": f"{tmp_path}:{TESTS / 'mutants'}", **variables}
        words = ["-p", "_hypothesis_pytestplugin", "-p", "probe", "-p", "no:cacheprovider", "-q", "--collect-only"]
        return subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, *words, __file__],
            env=env,
            cwd=TESTS.parent,
            capture_output=True,
            text=True,
        )

    return collect


@pytest.mark.parametrize(
    ("plugins", "variables", "found"),
    [
        ([], {"CI": "1"}, "16 True None"),
        ([], {"TAILHOOK_FUZZ": "1"}, "100 False None"),
        (["-p", "few_examples"], {}, "30 True None"),
    ],
    ids=["in CI", "long", "mutants"],
)
def test_a_run_has_the_projects_profile(collect, plugins, variables, found):
    done = collect(*plugins, **variables)
    assert f"PROFILE {found}\n" in done.stdout, done.stdout + done.stderr


def test_the_parts_together_are_all_tests():
    parts = [in_part(range(10), f"{number}/3") for number in (1, 2, 3)]
    assert parts == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "1/3/3", "1/0"])
def test_a_part_that_is_not_there_is_an_error(part):
    with pytest.raises(ValueError, match=f"^{part!r} is not a part as 2/3$"):
        in_part(range(10), part)


def test_a_run_may_have_a_part_of_the_tests(collect):
    names = re.findall(r"::(.*)", collect().stdout)
    assert re.findall(r"::(.*)", collect(TAILHOOK_PART="2/3").stdout) == in_part(names, "2/3")
    refused = collect(TAILHOOK_PART="4/3")
    assert (refused.returncode, "TAILHOOK_PART: '4/3' is not a part as 2/3" in refused.stderr) == (4, True)
