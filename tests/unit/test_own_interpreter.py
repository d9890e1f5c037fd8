"""The core in a sub-interpreter with a lock of its own. (PEP 684)"""

import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters with a lock of their own are there from 3.12 on")
def test_the_core_works_in_an_interpreter_of_its_own():
    if sys.version_info >= (3, 14):
        make = "from concurrent import interpreters; run = interpreters.create().exec"
    else:
        module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
        make = f"import {module} as it; one = it.create(); run = lambda code: it.run_string(one, code)"
    inside = (
        "from tailhook._core import parse_json, signals; "
        "assert parse_json(b'[1]') == [1]; assert signals('<loop-done>STUCK</loop-done>')"
    )
    code = f"import tailhook._core; {make}; failed = run({inside!r}); assert not failed, failed"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
