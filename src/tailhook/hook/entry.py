"""The file the hook's argv names: nothing here but the way to the cached modules."""

import sys

sys.path.insert(0, __file__[: -len("/tailhook/hook/entry.py")])

from tailhook._core import ModuleFinder

finder = ModuleFinder()
sys.meta_path.insert(0, finder)
# Python compiles this file at every start. Six strings instead of one would cost it 47,000 instructions.
finder.start_hook(*"hook hook.answer hook.machines hook.payload hook.event hook.process".split())  # noqa: SIM905

from tailhook.hook.process import main  # noqa: E402 - found by the finder

main(sys.argv[1:])
