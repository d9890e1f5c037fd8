"""The common parts of the machines: counts, owners, and values in messages."""

import importlib
import inspect
import re

import pytest

from tailhook.hook.machines import MACHINES, machines_with
from tailhook.machines import CLAIM, clip_field, format_value, owns, whole_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1}, "an object"),
        ([1], "an array"),
        ("ten", '"ten"'),
        ("a\nb\x1b", '"a?b?"'),
        (None, "None"),
        (1.5, "1.5"),
        (2**200 - 1, str(2**200 - 1)),
        (2**200, "a number of over 60 digits"),
        (-(2**200), "a number of over 60 digits"),
    ],
)
def test_a_message_shows_a_value_on_one_line(value, text):
    assert format_value(value) == text


def test_a_message_shows_eighty_characters_of_a_string_at_most():
    assert format_value("x" * 78) == f'"{"x" * 78}"'
    assert format_value("x" * 500) == f'"{"x" * 79}'


def test_a_field_is_shown_up_to_a_thousand_characters():
    assert clip_field("x" * 1000) == "x" * 1000
    assert clip_field("x" * 1001) == "x" * 1000


def test_a_count_may_be_spelled_with_up_to_64_digits():
    assert whole_number("5".rjust(64, "0")) == 5
    assert whole_number("5".rjust(65, "0")) is None


@pytest.mark.parametrize(("value", "count"), [(0, 0), (2**53, 2**53), (2**53 + 1, None), (-1, None), (True, None)])
def test_a_count_is_a_whole_number_from_0_to_2_to_the_53(value, count):
    assert whole_number(value) == count


@pytest.mark.parametrize(
    ("session_id", "owners", "acts"),
    [
        ("mine", ["mine"], True),
        ("mine", [None, "mine"], True),
        ("mine", [CLAIM], True),
        ("mine", ["mine", "other"], False),
        ("", [CLAIM], False),
        ("", [""], False),
    ],
)
def test_a_session_moves_only_what_names_it_or_can_be_claimed(session_id, owners, acts):
    assert owns(session_id, owners, unbound_acts=False) is acts


@pytest.mark.parametrize("name", [name for name in MACHINES if name not in machines_with("reports")])
def test_every_fact_of_a_machine_is_described(name):
    facts = importlib.import_module(f"tailhook.machines.{name}").Facts
    described = re.findall(r"^((?:\w+, )*\w+): ", inspect.getdoc(facts), re.MULTILINE)
    assert set(facts.__slots__) - set(", ".join(described).split(", ")) == set()
