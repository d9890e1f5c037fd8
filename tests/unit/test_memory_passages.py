"""Precision and recall of the memory machine's profiles, on labelled passages."""

from pathlib import Path

import pytest

from tailhook._core import score_lines
from tailhook.machines.memory import CATEGORIES

LETTERS = {"D": "DECISION", "R": "RUNBOOK", "C": "CONSTRAINT", "T": "TECH_DEBT", "P": "PREFERENCE"}


def passages():
    """Yield (categories, text) of each passage."""
    for line in Path(__file__).parents[1].joinpath("support/passages.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            labels, text = line.split("\t")
            yield {LETTERS[label] for label in labels.split(",") if label != "-"}, text


def measured(profile):
    """Return (precision, recall) of the categories found in the passages."""
    right = wrong = missed = 0
    for labels, text in passages():
        tuned = profile == "tuned"
        found = {CATEGORIES[category] for category, *_ in score_lines([text.encode()], tuned)}
        right += len(found & labels)
        wrong += len(found - labels)
        missed += len(labels - found)
    return right / (right + wrong), right / (right + missed)


def test_there_are_300_passages_of_all_kinds_and_none_twice():
    texts = [text for _, text in passages()]
    assert len(texts) == len(set(texts)) >= 300
    for category in CATEGORIES:
        assert sum(category in labels for labels, _ in passages()) >= 30
    assert sum(not labels for labels, _ in passages()) >= 100


@pytest.mark.parametrize(("profile", "precision", "recall"), [("seed", 0.68, 0.34), ("tuned", 0.79, 0.72)])
def test_precision_and_recall_of_a_profile(profile, precision, recall, report):
    found = measured(profile)
    figures = f"precision {found[0]:.2f}, recall {found[1]:.2f}"
    report(f"memory: profile {profile}, {figures} on {len(list(passages()))} passages")
    assert found[0] >= precision
    assert found[1] >= recall
