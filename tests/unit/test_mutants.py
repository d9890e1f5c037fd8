"""The list of mutants that no test can kill (tests/mutants/equivalent.py)."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EQUIVALENT = runpy.run_path(str(ROOT / "tests" / "mutants" / "equivalent.py"))["EQUIVALENT"]


@pytest.mark.parametrize("module", sorted({row[0] for row in EQUIVALENT}))
def test_every_line_that_the_list_excuses_is_in_the_code(module):
    code = (ROOT / "src" / "tailhook" / module).read_text(encoding="utf-8")
    lines = {" ".join(line.split()) for line in code.splitlines()}
    assert [row[2] for row in EQUIVALENT if row[0] == module and row[2] not in lines] == []
