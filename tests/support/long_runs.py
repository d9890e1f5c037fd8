"""How much of a long test a run does: a sample in `make test`, all of it in `make fuzz`."""

import os

IS_LONG = os.environ.get("TAILHOOK_FUZZ") == "1"


def sample(items, step):
    """Return every `step`th item, or all of them in `make fuzz`."""
    return list(items)[:: 1 if IS_LONG else step]


def examples(number):
    """Return how many examples Hypothesis tries: `number`, or ten times as many in `make fuzz`."""
    return 10 * number if IS_LONG else number
