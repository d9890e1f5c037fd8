"""The Hypothesis profile of a run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PROBE = """
from hypothesis import settings

def pytest_collection_finish(session):
    one = settings.default
    print("PROFILE", one.max_examples, one.derandomize, one.deadline)
"""


@pytest.mark.parametrize(
    ("plugins", "variables", "found"),
    [
        ([], {"CI": "1"}, "16 True None"),
        ([], {"TAILHOOK_FUZZ": "1"}, "100 False None"),
        ([], {"TAILHOOK_SAMPLE": "1", "CI": "1"}, "12 True None"),
        (["-p", "few_examples"], {}, "30 True None"),
    ],
    ids=["in CI", "long", "a sample", "mutants"],
)
def test_a_run_has_the_projects_profile(tmp_path, plugins, variables, found):
    (tmp_path / "probe.py").write_text(PROBE)
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "TAILHOOK_SAMPLE", "TAILHOOK_FUZZ")}
    # Other plugins than the project's own take seconds to import.
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": f"{tmp_path}:{TESTS / 'mutants'}", **variables}
    words = [
        *plugins,
        "-p",
        "_hypothesis_pytestplugin",
        "-p",
        "probe",
        "-p",
        "no:cacheprovider",
        "-q",
        "--collect-only",
        str(Path(__file__)),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], env=env, cwd=TESTS.parent, capture_output=True, text=True
    )
    assert f"PROFILE {found}\n" in done.stdout, done.stdout + done.stderr
