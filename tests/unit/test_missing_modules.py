"""What a command, the daemon and the doctor advise if a module cannot be imported."""

import importlib
import os
import posix
import sys

import pytest

from tailhook.cli.output import import_fault
from tailhook.doctor.daemon import check_answer, check_database
from tailhook.errors import TailhookError
from tailhook.plates.opening import open_database
from tailhook.plates.options import DaemonOptions

URL = "postgresql+psycopg://me@127.0.0.1:1/team"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """Give each test a state folder of its own."""
    monkeypatch.setitem(posix.environ, b"XDG_STATE_HOME", os.fsencode(tmp_path))


@pytest.fixture
def lacks(monkeypatch):
    """Return the function that lets a module's import fail."""
    return lambda name: monkeypatch.setitem(sys.modules, name, None)


def test_a_missing_part_of_tailhook_is_not_called_a_missing_package():
    """As while an upgrade replaces the files."""
    with pytest.raises(ImportError) as caught:
        importlib.import_module("tailhook.plates.gone")
    found = import_fault("the board", "board", caught.value)
    assert str(found).startswith("a part of tailhook itself is missing (No module named 'tailhook.plates.gone'). ")


def test_a_missing_package_is_named_with_the_command_for_the_environment_of_tailhook(monkeypatch):
    """`pip` on PATH may be another environment's, which has no tailhook."""
    monkeypatch.setattr(sys, "executable", "/home/my user/env/bin/python")
    missing = ImportError("No module named 'httpx'", name="httpx")
    assert str(import_fault("the board", "board", missing)) == (
        "the board needs more packages (No module named 'httpx'). Install them with:  "
        "'/home/my user/env/bin/python' -m pip install 'tailhook[board]'"
    )


def test_for_a_missing_part_of_tailhook_the_doctor_advises_to_install_no_package(lacks):
    lacks("tailhook.plates.client")
    (finding,) = check_answer("tailhook install")
    assert "being upgraded" in finding.advice
    assert "pip install" not in finding.advice


def test_the_doctor_names_the_extra_of_a_missing_package(lacks, monkeypatch):
    monkeypatch.delitem(sys.modules, "tailhook.plates.client", raising=False)
    lacks("httpx")
    (finding,) = check_answer("tailhook install")
    assert "pip install 'tailhook[serve]'" in finding.advice


def test_a_missing_driver_of_the_database_is_named_with_its_package(lacks):
    lacks("psycopg")
    with pytest.raises(TailhookError, match=r"the database cannot be opened: .*pip install 'psycopg\[binary\]'"):
        open_database(URL)
    DaemonOptions(db=URL).save()
    (finding,) = check_database()
    assert "pip install 'psycopg[binary]'" in finding.advice
