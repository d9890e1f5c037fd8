"""The counting lines of a category, beside an oracle written only from the machine's page."""

from random import Random

import pytest
from support.keywords import BESIDE, spelled
from support.long_runs import examples
from support.oracles.memory_lines import Scorer

from tailhook._core import score_lines
from tailhook.machines.keywords import tables

DOCUMENTS = examples(400)
PIECES = [
    "\n", "\n", "\n", "\n\n", "\r\n", " ", "  ", "    ", "\t", "- ", "> ", "1. ", "`", "``", "```\n", "~~~\n",
    "<!-- x -->", "<pre>\n", "</pre>\n", "words", "and more", ".", ", ", "`code`", "```\ncode\n```\n", "\n    code\n",
    "x" * 300, "\u00a0", "\x0c",
]  # fmt: skip


def document(chance, words):
    """Draw a message with keywords among code and blank space."""
    parts = []
    for _ in range(chance.choice((1, 3, 10, 30, 30))):
        parts.append(chance.choice(PIECES))
        if chance.random() < 0.6:
            parts.append(spelled(chance, chance.choice(words)))
        if chance.random() < 0.1:
            parts.append(chance.choice(BESIDE))
    return "".join(parts)


@pytest.mark.parametrize("profile", ["seed", "tuned"])
def test_the_same_lines_count_as_by_the_oracle(profile, report):
    chance, oracle = Random(20261121), Scorer(profile)
    words = [word for _, word in tables()[profile]]
    counted = 0
    for _ in range(DOCUMENTS):
        messages = [document(chance, words) for _ in range(chance.choice((1, 1, 2, 5)))]
        given = [message.encode("utf-8", "surrogatepass") for message in messages]
        found = [
            (category, message, *(part.decode("utf-8", "surrogatepass") for part in parts), boosted)
            for category, message, *parts, boosted in score_lines(given, profile == "tuned")
        ]
        expected = oracle.score(messages)
        for category in range(5):
            mine = [one for one in found if one[0] == category]
            assert mine == [one for one in expected if one[0] == category], messages
        counted += len(found)
    report(f"memory: {counted:,} lines of {DOCUMENTS:,} sessions count in profile {profile}, as by the oracle")


def test_a_message_of_many_chunks_is_scored_as_a_whole():
    """Windows reach over the edges of a chunk of the search."""
    for blanks in range(8150, 8230):
        for lines in (["because", "decided"], ["decided", "because"], ["because", "", "decided"]):
            text = "x" * blanks + "\n" + "\n".join(lines)
            assert [line[5] for line in score_lines([text.encode()])] == [True], (blanks, lines)
        for lines in (["because", "x", "x", "decided"], ["decided", "x", "because"]):
            text = "x" * blanks + "\n" + "\n".join(lines)
            assert [line[5] for line in score_lines([text.encode()])] == [False], (blanks, lines)


def test_what_is_full_is_not_looked_at_any_further():
    whole = "decided because\nerror, resolved\ncannot, turns out\nTODO for now\nprefer, agreed\n" * 5
    found = score_lines([whole.encode()])
    assert len(found) == 5 * 5
    assert score_lines([whole.encode(), whole.encode()]) == found
