"""What a hook runs first: nothing here but the way to the cached modules. The native client hands Python its text."""

import sys

# Python compiles this file at every start: another line costs up to 100,000 instructions.
sys.path.insert(0, __file__[:-23])  # without /tailhook/hook/entry.py

try:
    from tailhook._core import ModuleFinder

    # Six strings instead of one would cost 47,000 more.
    ModuleFinder().start_hook(*"hook hook.answer hook.machines hook.payload hook.event hook.process".split())  # noqa: SIM905
    from tailhook.hook.process import main
except Exception as error:  # while tailhook is upgraded, files are missing or half written
    sys.stderr.write("tailhook: %s. The agent may stop.\n" % error)  # noqa: UP031 - an f-string takes twice as long
    raise SystemExit  # noqa: B904

main(sys.argv[1:])
