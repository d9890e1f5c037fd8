"""The cost of the library grows no faster than its input: four times the input costs at most four times as much.

Instructions are counted, so a busy computer changes nothing. `make instructions` runs this: valgrind takes minutes.
"""

import os
import sys
from pathlib import Path

import pytest
from support.instructions import COUNTED, count_instructions

AT_MOST = 4.4  # buffers that double, and the logarithm of a search, make it more than 4
TESTS = Path(__file__).resolve().parents[1]

MASKS = """
from support.usual_secrets import HOSTILE
from tailhook.machines.secrets import mask
for piece in HOSTILE:
    mask(piece * (size // len(piece)))
"""
REQUESTS_OF_ONE_MESSAGE = """
from tailhook._core import ResponseCounter, make_batch
from tailhook.fleet.reduce import USAGE_HALF
known = {"path": "p", "session_id": "s", "host": "claude-code", "message_id": "m", "copies": 1, "output_tokens": 1}
rows = [[{**known, "offset": n, "request_id": f"r{n}"}.get(name) for name in USAGE_HALF] for n in range(size)]
counter = ResponseCounter(USAGE_HALF)
counter.add(make_batch("usage", USAGE_HALF, rows))
assert sum(map(len, counter.rows(("request_id",)))) == size
"""
MATCHES_BESIDE_A_LONG_NAME = """
import json
import tailhook
record = {"type": "user", **dict.fromkeys(["cwd", "sessionId", "gitBranch"], "\\n" * size)}
with open(f"{size}.jsonl", "w") as out:
    json.dump({**record, "message": {"content": "e " * size}}, out)
found = tailhook.scan(out.name, patterns=["e"], columns=["project", "session_id", "git_branch"])
assert sum(map(len, found)) == size
"""


@COUNTED
@pytest.mark.parametrize(
    ("program", "size"),
    [(MASKS, 20_000), (REQUESTS_OF_ONE_MESSAGE, 5_000), (MATCHES_BESIDE_A_LONG_NAME, 100_000)],
    ids=["masks of hostile text", "requests of one message", "matches beside a long name"],
)
def test_four_times_the_input_costs_the_library_at_most_four_times_as_much(program, size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    empty, once, four_times = (
        count_instructions([sys.executable, "-c", f"size = {number}\n{program}"], Path(os.devnull), env)
        for number in (0, size, 4 * size)
    )
    assert four_times - empty < AT_MOST * (once - empty)
