"""Run the hook's entry file and measure coverage: `python -I tests/support/covered_hook.py ENTRY [argument ...]`.

A host's hook runs without `site`, so coverage.py would not start, and ends without saving a measurement. All else is as
in the argv of a host. (tests/support/host.py)
"""

import posix
import runpy
import sys

posix._exit = sys.exit
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="tailhook.hook.entry")
