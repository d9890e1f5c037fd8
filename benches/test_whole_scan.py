"""A whole scan: lines, records, prose, matches; beside a combination of libraries, and ripgrep, which reads bytes."""

import re
import shutil
import subprocess

import orjson
import pytest
from markdown_it import MarkdownIt
from support.oracles.markdown import Oracle

import tailhook
from tailhook.machines.idle import SIGNALS

WANTED = {"function": "function", "error": "error", "test": "pytest", **{name: name for name in SIGNALS["issue"]}}
PATTERNS = tailhook.PatternSet(WANTED, outside_code=True)
SIZE = 4_000_000  # bytes, for peers that take seconds over it


@pytest.fixture(scope="module")
def part(transcripts, tmp_path_factory):
    """Return the path of the first lines of the large transcript."""
    path = tmp_path_factory.mktemp("scan") / "part.jsonl"
    with transcripts.open("rb") as file:
        path.write_bytes(b"\n".join(file.read(SIZE).split(b"\n")[:-1]) + b"\n")
    return path


def tailhook_scan(path):
    with tailhook.open(path) as transcript:
        return [(match.record.offset, match.name, match.start) for match in transcript.findall(PATTERNS)]


def orjson_markdown_it_re(path, oracle=Oracle()):  # noqa: B008
    """Scan with the code regions of the tests' oracle, markdown-it-py."""
    expression = re.compile("|".join(map(re.escape, WANTED.values())))
    names = {pattern: name for name, pattern in WANTED.items()}
    found, offset = [], 0
    for line in path.read_bytes().splitlines(keepends=True):
        text = own_text(line)
        code = oracle.spans(text) if text else []
        for match in expression.finditer(text):
            if not any(start < match.end() and match.start() < end for _, start, end in code):
                found.append((offset, names[match[0]], match.start()))
        offset += len(line)
    return found


def own_text(line):
    try:
        record = orjson.loads(line)
    except ValueError:
        return ""
    if record.get("type") != "assistant" or record.get("isSidechain") or record.get("isApiErrorMessage"):
        return ""
    content = record["message"]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text" and block["text"].strip())


def orjson_markdown_it_parse(path, parse=MarkdownIt("commonmark").parse):  # noqa: B008
    """Scan without mapping the code regions back: the time that the libraries alone need."""
    for line in path.read_bytes().splitlines():
        parse(own_text(line))


def ripgrep(path):
    words = [word for pattern in WANTED.values() for word in ("-e", pattern)]
    subprocess.run(["rg", "--threads=1", "--fixed-strings", "--count", *words, path], check=True, capture_output=True)


@pytest.mark.parametrize(
    "engine", [tailhook_scan, orjson_markdown_it_re, orjson_markdown_it_parse, ripgrep], ids=lambda it: it.__name__
)
def test_whole_scan(benchmark, engine, part):
    if engine is ripgrep and shutil.which("rg") is None:
        pytest.skip("no ripgrep here")
    if engine is tailhook_scan:
        assert tailhook_scan(part) == orjson_markdown_it_re(part)
    benchmark.extra_info["bytes"] = part.stat().st_size
    benchmark.pedantic(engine, [part], rounds=3 if "markdown" in engine.__name__ else 15, warmup_rounds=1)
