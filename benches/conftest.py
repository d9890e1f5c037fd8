"""What the benchmarks read: the shared transcripts, repeated to a size that no cache holds."""

import pytest
from support.corpora import transcript_paths

SIZE = 200_000_000  # bytes


@pytest.fixture(scope="session")
def transcripts(tmp_path_factory):
    """Return the path of one large transcript."""
    once = b"".join(path.read_bytes().rstrip(b"\n") + b"\n" for path in transcript_paths())
    path = tmp_path_factory.mktemp("transcripts") / "large.jsonl"
    with path.open("wb") as file:
        for _ in range(SIZE // len(once) + 1):
            file.write(once)
    return path
