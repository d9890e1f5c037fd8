"""The programs that do nothing, on a system with other places for them. doctor and bench measure hooks beside them."""

import os
from pathlib import Path

import pytest
from support.host import short_folder
from support.pool import Pool

from tailhook.cli import main
from tailhook.doctor.trial import why_not_warm
from tailhook.pool import reference_programs


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Return an empty folder, the only one that is searched for programs."""
    monkeypatch.setattr(reference_programs, "USUAL_FOLDERS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_true_is_found_in_another_folder(elsewhere):
    (elsewhere / "true").symlink_to(os.path.realpath("/bin/sh"))
    assert reference_programs.nothing_program() == str(elsewhere / "true")


def test_without_true_doctor_does_not_time_the_warm_form(elsewhere):
    with short_folder() as home, Pool(Path(home)) as pool:
        assert why_not_warm(pool.argv[0]) == "true: hooks are measured beside this program, which cannot be found"


def test_without_true_bench_ends_with_an_error(elsewhere, capsys):
    assert main(["bench", "--hook", "/bin/sh -c :", "--rounds", "1"]) == 1
    assert capsys.readouterr().err == "tailhook: true: hooks are measured beside this program, which cannot be found\n"
