"""The file that the client's argv for a new pool names: nothing here but the way to the modules."""

import sys

sys.path.insert(0, __file__[: -len("/tailhook/pool/entry.py")])

from tailhook.pool.serve import main

sys.exit(main(sys.argv[1:]))
