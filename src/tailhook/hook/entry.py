"""What a hook runs first: nothing here but the way to the cached modules. The native client hands Python its text."""

import sys

# Python compiles this file at every start: another line costs up to 100,000 instructions. To import the core would cost
# 300,000 more: Python would list two folders and try five names.
try:
    from _frozen_importlib import _load  # type: ignore[attr-defined]
    from _frozen_importlib_external import EXTENSION_SUFFIXES, spec_from_file_location

    core = _load(spec_from_file_location("tailhook._core", __file__[:-13] + "_core" + EXTENSION_SUFFIXES[0]))
    core.ModuleFinder().start_hook(__file__, "hook hook.answer hook.machines hook.payload hook.event hook.process")
    from tailhook.hook.process import main
except Exception as error:  # while tailhook is upgraded, files are missing or half written
    sys.stderr.write("tailhook: %s. The agent may stop.\n" % error)  # noqa: UP031 - an f-string takes twice as long
    raise SystemExit  # noqa: B904

main(sys.argv[1:])
