"""The file the hook's argv names: nothing here but the way to the cached modules."""

import sys

sys.path.insert(0, __file__[: -len("/tailhook/hook/entry.py")])

from tailhook._core import ModuleFinder

sys.meta_path.insert(0, ModuleFinder())

from tailhook.hook.process import main  # noqa: E402 - found by the finder

main(sys.argv[1:])
