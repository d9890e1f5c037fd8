"""Test data from outside the project, read from folders outside the tree; a test is skipped if it is missing.

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
    """Return the path of a file or folder of the corpora."""
    for folder in FOLDERS:
        if (folder / name).exists():
            return folder / name
    return pytest.skip(f"no {name} at hand: `make corpora` fetches what is published")


def load(name):
    return json.loads(corpus(name).read_text(encoding="utf-8"))


def commonmark_examples():
    """Return the examples of CommonMark 0.31.2: [{"markdown", "html", "example", "section", ...}]."""
    return load("corpora/commonmark-0.31.2.json")


def json_test_suite():
    """Return {"valid": [bytes], "invalid": [bytes]}: the texts that a parser must accept and must reject."""
    return {
        kind: [base64.b64decode(text) for text in texts]
        for kind, texts in load("corpora/json_test_suite.json").items()
        if kind != "about"
    }


def naughty_strings():
    """Return the strings of the Big List of Naughty Strings."""
    return load("corpora/blns.json")


def transcript_paths():
    """Return the paths of real transcripts."""
    return sorted(corpus("transcripts").glob("*.jsonl"))
