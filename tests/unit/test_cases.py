"""Tests of many cases fail if one case does, and name it."""

import inspect

import pytest
from support.cases import in_one_test


def test_each_combination_is_tried_and_the_one_that_fails_is_named():
    tried = []

    @in_one_test("first", [1, 2])
    @in_one_test(("second", "third"), [("a", 0), ("b", 1)])
    def check(fixture, first, second, third):
        tried.append((first, second))
        assert (first, third) != (2, 0), "this one fails"

    assert list(inspect.signature(check).parameters) == ["fixture"]
    with pytest.raises(AssertionError, match="this one fails") as failure:
        check(fixture=None)
    assert tried == [(1, "a"), (1, "b"), (2, "a")]
    assert failure.value.__notes__ == ["in the case {'second': 'a', 'third': 0}", "in the case {'first': 2}"]


def test_without_cases_and_without_their_parameter_it_is_an_error():
    with pytest.raises(AssertionError):
        in_one_test("value", [])
    with pytest.raises(AssertionError, match="does not take"):
        in_one_test("value", [1])(lambda other: None)
