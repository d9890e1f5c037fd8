"""The public names of the package."""

import subprocess
import sys

import tailhook


def test_a_fresh_interpreter_lists_all_public_names():
    code = "import tailhook; print(*dir(tailhook))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(tailhook.__all__) <= set(done.stdout.split())
