"""The tables of a scan, as the parameter of a test."""

import pytest

from tailhook.fleet.columns import TABLE_COLUMNS

TABLES = pytest.mark.parametrize("table", TABLE_COLUMNS)
