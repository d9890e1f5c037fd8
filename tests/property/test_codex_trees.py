"""Random histories of Codex: the scan and the second counter give the bill in any order and at any cut of the files."""

from datetime import datetime
from random import Random

import pytest
from support.codex_trees import grow_codex
from support.long_runs import examples
from support.oracles.host_usage import responses
from support.oracles.scan import Question
from support.scans import scan_rows

COLUMNS = ("session_id", "model", "timestamp", "input_tokens", "output_tokens", "cache_read_tokens")
SEEDS_AT_ONCE = 25


def found(files, random):
    """Return what the scan counts in pairs of name and bytes, in an order of its own."""
    rows = scan_rows("usage", files, Question(), random)
    return sorted((tuple(row[name] for name in COLUMNS) for row in rows), key=repr)


def in_order(bill):
    """Return responses of a bill as `found` does."""
    rows = [row[1:7] for row in bill]
    times = [datetime.fromisoformat(row[2].replace("Z", "+00:00")) for row in rows]
    return sorted(((*row[:2], time, *row[3:]) for row, time in zip(rows, times, strict=True)), key=repr)


@pytest.mark.parametrize("start", range(0, examples(150), SEEDS_AT_ONCE))
def test_a_random_history_of_codex_gives_its_bill(tmp_path, start):
    for seed in range(start, start + SEEDS_AT_ONCE):
        random = Random(seed)
        history = grow_codex(random)
        bill = in_order(history.bill)
        folder = tmp_path / str(seed)
        folder.mkdir()
        for name, text in history.files.items():
            (folder / name).write_text(text)
        assert in_order(responses("codex", [folder / name for name in history.files])) == bill, seed
        files = [(name, text.encode()) for name, text in history.files.items()]
        assert found(files, None) == bill, seed
        random.shuffle(files)
        assert found(files, random) == bill, seed
