"""The set of transcripts on which scans are measured: 1 GB in a thousand files, or SET_GB times as much."""

import os
from pathlib import Path

from support.corpora import transcript_paths

SIZES = int(os.environ.get("SET_GB", "1"))
SET_BYTES = 1_050_000_000 * SIZES
FILES = 1_000 * SIZES


def make_set(folder: Path) -> int:
    """Write each shared transcript many times, each time with ids of its own; return the size in bytes."""
    folder.mkdir(parents=True)
    sources = [path.read_bytes().rstrip(b"\n") + b"\n" for path in transcript_paths()]
    made = size = 0
    while made < FILES or size < SET_BYTES:
        data = sources[made % len(sources)]
        for prefix in (b"msg_", b"req_", b"toolu_"):
            data = data.replace(b'"' + prefix, b'"%b%d_' % (prefix, made))
        (folder / f"session-{made:05}.jsonl").write_bytes(data)
        size += len(data)
        made += 1
    return size
