"""A pytest plugin: Hypothesis takes few examples, and the same ones in every run."""

import pytest
from hypothesis import settings

settings.register_profile("mutants", max_examples=30, derandomize=True, deadline=None, database=None)


@pytest.hookimpl(trylast=True)
def pytest_configure():
    """Load it after tests/conftest.py has loaded its own."""
    settings.load_profile("mutants")
