"""The counter of a process's instructions for the tests of costs. Valgrind takes seconds, so it counts in long runs."""

import pytest

from support.host import SANITIZER
from support.long_runs import IS_LONG
from tailhook.bench.instructions import instruction_counter

count_instructions = instruction_counter(slow=True) if IS_LONG and not SANITIZER else None
COUNTED = pytest.mark.skipif(
    count_instructions is None, reason="`make instructions` counts; or neither the processor nor valgrind counts here"
)
