"""The responses in the transcripts of other hosts by a scan, by an independent count and by known bills."""

from datetime import datetime
from random import Random

from support.cases import in_one_test
from support.oracles.scan import Question
from support.scans import scan_rows
from support.usage_histories import HISTORIES

COLUMNS = ("host", "session_id", "model", "timestamp")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


def found(files, random=None):
    """Return the scan's responses in files with the given names and bytes, sorted."""
    rows = scan_rows("usage", list(files.items()), Question(), random)
    return sorted(([row[name] for name in COLUMNS] + [row[name] or 0 for name in TOKENS] for row in rows), key=repr)


def billed(bill):
    """Return responses of a bill as `found` does."""
    rows = [[*row._replace(timestamp=datetime.fromisoformat(row.timestamp.replace("Z", "+00:00")))] for row in bill]
    return sorted(rows, key=repr)


@in_one_test("name", HISTORIES)
def test_each_history_of_another_host_gives_its_bill(name):
    history = HISTORIES[name]()
    files = {name: text.encode() for name, text in history.files.items()}
    assert found(files) == billed(history.bill)
    assert found(dict(reversed(files.items()))) == billed(history.bill)
    assert found({**files, **{f"archived/{name}": data for name, data in files.items()}}) == billed(history.bill)
    assert found(files, Random(5)) == billed(history.bill)
