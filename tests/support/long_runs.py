"""The part of a long test in a run: all in `make fuzz`, a sample in `make test`, less in `make interpreters`."""

import os

IS_LONG = os.environ.get("TAILHOOK_FUZZ") == "1"
IS_SHORT = os.environ.get("TAILHOOK_SAMPLE") == "1"


def sample(items, step):
    """Return every `step`th item, or all of them in `make fuzz`."""
    return list(items)[:: 1 if IS_LONG else step]


def examples(number):
    """Return the number of Hypothesis's examples.

    A sixth of `number` in `make test`, ten times as many as `number` in `make fuzz`, an eighth in `make interpreters`.
    """
    return 10 * number if IS_LONG else max(1, number // (8 if IS_SHORT else 6))
