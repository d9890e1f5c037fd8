"""The file the hook's argv names: nothing here but the way to the cached modules."""

import sys

# Python compiles this file at every start: another line costs it up to 150,000 instructions.
sys.path.insert(0, __file__[:-23])  # without /tailhook/hook/entry.py

try:
    from tailhook._core import ModuleFinder

    finder = ModuleFinder()
    sys.meta_path.insert(0, finder)
    finder.start_hook(*"hook hook.answer hook.machines hook.payload hook.event hook.process".split())  # noqa: SIM905
    from tailhook.hook.process import main
except Exception as error:  # while tailhook is upgraded, files are missing or half written
    sys.stderr.write("tailhook: %s. The agent may stop.\n" % error)  # noqa: UP031 - an f-string takes twice as long
    sys.exit()

main(sys.argv[1:])
