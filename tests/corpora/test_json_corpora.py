"""JSONTestSuite and the Big List of Naughty Strings."""

import json

import pytest
from support.corpora import json_test_suite, naughty_strings

from tailhook._core import parse_json, write_json


def test_every_text_that_must_be_accepted_is():
    texts = json_test_suite()["valid"]
    assert len(texts) == 95
    for text in texts:
        assert parse_json(text) == json.loads(text), text


def test_every_text_that_must_be_rejected_is():
    texts = json_test_suite()["invalid"]
    assert len(texts) == 188
    for text in texts:
        with pytest.raises(ValueError, match="at byte"):
            parse_json(text)


def test_naughty_strings_survive_in_names_and_values():
    strings = naughty_strings()
    for style in range(3):
        for string in strings:
            assert parse_json(write_json({string: [string]}, style)) == {string: [string]}
    assert json.loads(write_json(strings)) == strings
