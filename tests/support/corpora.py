"""Test data that is not ours, read from folders outside the tree; a test skips where it is missing.

The folders are TAILHOOK_CORPORA, `shared` beside the checkout, and what `make corpora` fetched.
"""

import base64
import json
import os
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
FETCHED = TREE / "build" / "shared"
FOLDERS = (Path(os.environ.get("TAILHOOK_CORPORA") or TREE.parent / "shared"), FETCHED)


def corpus(name):
    """The path of a file or folder of the corpora."""
    for folder in FOLDERS:
        if (folder / name).exists():
            return folder / name
    return pytest.skip(f"no {name} at hand: `make corpora` fetches what is published")


def load(name):
    return json.loads(corpus(name).read_text(encoding="utf-8"))


def commonmark_examples():
    """[{"markdown", "html", "example", "section", ...}] of CommonMark 0.31.2."""
    return load("corpora/commonmark-0.31.2.json")


def json_test_suite():
    """{"valid": [bytes], "invalid": [bytes]}: what a parser must accept, what it must reject."""
    return {
        kind: [base64.b64decode(text) for text in texts]
        for kind, texts in load("corpora/json_test_suite.json").items()
        if kind != "about"
    }


def naughty_strings():
    """[str] of the Big List of Naughty Strings."""
    return load("corpora/blns.json")


def transcript_paths():
    """[Path] of real transcripts."""
    return sorted(corpus("transcripts").glob("*.jsonl"))
