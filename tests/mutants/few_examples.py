"""A pytest plugin: Hypothesis takes few examples, and the same ones in every run. A run that hangs ends itself."""

import faulthandler
import os

import pytest
from hypothesis import settings

settings.register_profile("mutants", max_examples=30, derandomize=True, deadline=None, database=None)


@pytest.hookimpl(trylast=True)
def pytest_configure():
    """Load it after tests/conftest.py has loaded its own."""
    settings.load_profile("mutants")
    faulthandler.dump_traceback_later(float(os.environ.get("MUTANT_SECONDS", "600")), exit=True)
