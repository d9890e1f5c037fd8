"""Entries of a list of tables in TOML: only their own bytes come and go."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailhook.install.toml_text import TomlError, add_entry, change_entry, entry_places, read_toml_text, remove_entry

ENTRY = {"event": "Stop", "command": 'a "b" \\ c', "timeout": 10}
TEXTS = [
    "",
    "\n",
    "# only a comment\n",
    "a = 1  # a comment without a line's end",
    'a = """\n[[hooks]]\nevent = "Stop"\n"""\n',
    "a = '''\n\n[[hooks]]'''\n[b]\n[[c]]\n",
    '[[hooks]] # one\nevent = "x"\n# after one\n\n[b]\nc = [\n  1,\n  # in a list\n]\n[[hooks]]\n',
    '\r\n[[hooks]]\r\nevent = "x"\r\n',
    '\ufeff[[hooks]]\nmore = [[1], [2]]\nevent = """\n[b]\n"""\n',
    'x = {a = "[[hooks]]"}\n\n\n',
]


@pytest.mark.parametrize("text", TEXTS)
def test_an_added_entry_is_the_last_one_and_removed_again_it_leaves_the_text(text):
    before = read_toml_text(text).get("hooks", [])
    added = add_entry(text, "hooks", ENTRY)
    assert added.startswith(text)
    assert read_toml_text(added)["hooks"] == [*before, ENTRY]
    left = remove_entry(added, entry_places(added, "hooks")[-1])
    assert left == (text if text.endswith("\n") or not text else f"{text}\n")


@pytest.mark.parametrize("text", TEXTS)
def test_each_entry_can_be_removed_and_no_comment_goes_with_it(text):
    for at, (start, end) in enumerate(entry_places(text, "hooks")):
        assert text[start:].startswith("[[hooks]]")
        left = remove_entry(text, (start, end))
        values = read_toml_text(text)
        del values["hooks"][at]
        found = read_toml_text(left)
        assert {**found, "hooks": found.get("hooks", [])} == values
        assert "# after one" in left or "# after one" not in text


@pytest.mark.parametrize("text", ["hooks = []\n", 'hooks = [{event = "x"}]\n', "[hooks]\n", "hooks = 1\n"])
def test_a_list_that_is_written_in_another_way_is_refused(text):
    with pytest.raises(TomlError, match=r'^"hooks" is not written as \[\[hooks\]\]'):
        add_entry(text, "hooks", ENTRY)


@pytest.mark.parametrize("text", ['hooks = [{event = "x"}]\n', "[[hooks]]\na = nan\n", "[[hooks]]\n[b]\n[hooks.c]\n"])
def test_an_entry_with_a_part_elsewhere_or_without_an_equal_is_refused(text):
    with pytest.raises(TomlError):
        entry_places(text, "hooks")


def test_another_value_takes_the_place_of_the_old_one_in_that_entry_alone():
    text = add_entry(add_entry("# mine\n", "hooks", ENTRY), "hooks", ENTRY)
    changed = change_entry(text, entry_places(text, "hooks")[1], ENTRY["command"], "d")
    assert read_toml_text(changed)["hooks"] == [ENTRY, {**ENTRY, "command": "d"}]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_can_be_a_value(value):
    assert tomllib.loads(add_entry("", "hooks", {"command": value}))["hooks"] == [{"command": value}]
