"""The part of the work that a run does: of a long test all in `make fuzz`, a sample elsewhere; of the tests a part."""

import os
import re

IS_LONG = os.environ.get("TAILHOOK_FUZZ") == "1"
PART = os.environ.get("TAILHOOK_PART")  # "2/3": the second of each three tests; not set: all of them


def sample(items, step):
    """Return every `step`th item, or all of them in `make fuzz`."""
    return list(items)[:: 1 if IS_LONG else step]


def examples(number):
    """Return the number of Hypothesis's examples: a sixth of `number`, or ten times as many in `make fuzz`."""
    return 10 * number if IS_LONG else max(1, number // 6)


def in_part(items, part):
    """Return the items of a part: of "2/3" the second of each three. Raises ValueError if it is written otherwise."""
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", part)
    if not found or int(found[1]) > int(found[2]):
        raise ValueError(f"{part!r} is not a part as 2/3")
    return list(items)[int(found[1]) - 1 :: int(found[2])]
