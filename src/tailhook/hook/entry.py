"""The file the hook's argv names: nothing here but the way to the cached modules."""

import sys

sys.path.insert(0, __file__[: -len("/tailhook/hook/entry.py")])

from tailhook.hook.process import main

main(sys.argv[1:])
