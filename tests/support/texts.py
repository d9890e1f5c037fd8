"""Markdown of assistants: from the transcripts if there are any, otherwise generated."""

import json
from random import Random

import pytest

from support.corpora import transcript_paths


def assistant_texts():
    """Return the text blocks of assistants in the transcripts; skips the test if there are no transcripts."""
    return [text for path in transcript_paths() for text in texts_of(path)]


def texts_of(path):
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("type") == "assistant":
            content = record.get("message", {}).get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            yield from (block["text"] for block in blocks if block.get("type") == "text")


def assistant_prose():
    """Return the texts of all transcripts as one, or about 200 KB of generated prose."""
    try:
        return "\n\n".join(assistant_texts())
    except pytest.skip.Exception:
        return generated_prose(Random(1))


def generated_prose(random):
    words = "the file now holds what test runs after change because error path value returns".split()  # noqa: SIM905
    blocks = []
    for _ in range(1500):
        kind = random.random()
        sentences = [" ".join(random.choices(words, k=12)).capitalize() + "." for _ in range(random.randint(1, 3))]
        text = " ".join(sentences).replace(" file ", " `file.py` ").replace(" value ", " **value** ")
        if kind < 0.05:
            blocks.append("```python\n" + "value = returns(path)\n" * random.randint(1, 12) + "```")
        elif kind < 0.4:
            blocks.append("\n".join(f"- {sentence}" for sentence in text.split(". ")))
        elif kind < 0.5:
            blocks.append("## " + sentences[0])
        else:
            blocks.append(text)
    return "\n\n".join(blocks) + "\n"
