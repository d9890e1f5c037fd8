"""All lines of a file, newest first, beside other libraries for it."""

import collections
import mmap
import subprocess

import pytest
from file_read_backwards import FileReadBackwards

from tailhook._core import reverse_lines


def tailhook_lines(path):
    with path.open("rb", buffering=0) as file:
        for _, line in reverse_lines(file):
            yield line


def mmap_lines(path):
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = len(data) - 1
        while end >= 0:
            start = data.rfind(b"\n", 0, end) + 1
            yield data[start:end]
            end = start - 1


def backwards_lines(path):
    with FileReadBackwards(path) as lines:
        for line in lines:
            yield line.encode()


def tailhook_loop(path):
    with path.open("rb", buffering=0) as file:
        collections.deque(reverse_lines(file), maxlen=0)


def mmap_loop(path):
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = len(data) - 1
        while end >= 0:
            start = data.rfind(b"\n", 0, end) + 1
            data[start:end]
            end = start - 1


def tailhook_passing(path):
    """Find every line but return none: all are longer than the limit of 0 bytes."""
    with path.open("rb", buffering=0) as file:
        collections.deque(reverse_lines(file, max_line=0), maxlen=0)


def mmap_passing(path):
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = len(data) - 1
        while end >= 0:
            end = data.rfind(b"\n", 0, end)


def tac(path):
    subprocess.run(["tac", path], stdout=subprocess.DEVNULL, check=True)


def backwards_loop(path):
    collections.deque(backwards_lines(path), maxlen=0)


def test_every_engine_gives_the_same_lines(transcripts, tmp_path):
    part = tmp_path / "part.jsonl"
    with transcripts.open("rb") as file:
        part.write_bytes(b"\n".join(file.read(20_000_000).split(b"\n")[:-1]) + b"\n")
    lines = part.read_bytes().split(b"\n")[-2::-1]
    assert list(tailhook_lines(part)) == lines
    assert list(mmap_lines(part)) == lines
    assert list(backwards_lines(part)) == lines
    assert subprocess.run(["tac", part], stdout=subprocess.PIPE, check=True).stdout.split(b"\n")[:-1] == lines


@pytest.mark.parametrize(
    "engine",
    [tailhook_loop, mmap_loop, tailhook_passing, mmap_passing, tac, backwards_loop],
    ids=lambda it: it.__name__,
)
def test_all_lines_newest_first(benchmark, engine, transcripts):
    benchmark.extra_info["bytes"] = transcripts.stat().st_size
    benchmark.pedantic(engine, [transcripts], rounds=1 if engine is backwards_loop else 9, warmup_rounds=1)
