"""`python -m tailhook`: the command, for an interpreter without its script."""

import sys

from tailhook.cli import main

sys.exit(main())
