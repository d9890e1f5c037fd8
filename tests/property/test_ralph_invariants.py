"""Invariants of every ralph loop, for any file and any message of the agent."""

import re
from itertools import groupby

from hypothesis import example, given
from hypothesis import strategies as st

from tailhook._core import promises
from tailhook.machines.ralph import Facts, decide, normalize_space
from tailhook.stores.frontmatter import FrontMatter, quote_yaml

LETTERS = st.text(st.sampled_from("ab: -#\"'\\\n\r\t\u00e9\u2028\0"), max_size=30)
VALUES = st.none() | st.sampled_from(["", "0", "1", "08", "10", "-1", "x", "true", "false", "claim", "mine"]) | LETTERS
KEYS = ("active", "iteration", "max_iterations", "completion_promise", "session_id", "promise_own_line")
STATES = st.none() | st.dictionaries(st.sampled_from(KEYS), VALUES)
SAID = st.lists(st.sampled_from(["<promise>", "</promise>", "`", "```\n", "\n", " ", "a", "08", "    "])).map("".join)


@given(STATES, LETTERS, SAID, st.sampled_from(["", "mine"]), st.booleans())
def test_no_state_crashes_and_a_block_has_a_prompt_and_counts_one(state, prompt, said, session, paused):
    facts = Facts(session, paused, promises=lambda own_line: promises(said, own_line))
    found = decide(state, prompt.strip(), facts)
    assert found.outcome in ("allow", "block")
    if found.outcome == "block":
        assert found.reason
        assert int(found.change["iteration"]) == int(state.get("iteration") or 0) + 1
        assert not found.ended
        assert not paused
    if session == "" and state and state.get("session_id") is not None and not found.ended:
        assert (found.outcome, found.change) == ("allow", None)


@given(SAID, st.booleans())
@example("<promise>a</promise>", True)
@example("<promise>a</promise><promise>a</promise><promise>b</promise><promise>a</promise>", True)
def test_promises_are_those_of_a_regular_expression_if_nothing_is_code(said, own_line):
    plain = said.replace("`", "").replace("    ", "")
    expected = re.findall(r"<promise>((?:(?!<promise>).)*?)</promise>", plain, re.S)
    assert promises(plain) == [promise for promise, _ in groupby(expected)]
    assert set(promises(plain, own_line)) <= set(expected)


@given(st.text(), st.text(max_size=5))
def test_a_quoted_value_is_read_back_and_stays_on_its_line(value, prompt):
    value = value.encode("utf-8", "replace").decode()
    text = FrontMatter("---\niteration: 1\nkey: old\n---\n" + prompt).set("key", quote_yaml(value))
    page = FrontMatter(text)
    assert page["key"] == value
    assert page["iteration"] == "1"
    assert list(page.spans) == ["iteration", "key"]


@given(LETTERS, LETTERS, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["iteration: 5", "iteration:5", "x: 1"]))
def test_setting_a_value_leaves_every_other_byte(before, after, newline, line):
    text = newline.join(("---", *(f"k{i}: {part}" for i, part in enumerate(before.split("\n"))), line, "---", after))
    page = FrontMatter(text)
    changed = page.set("iteration", "6")
    if "iteration" in page:
        start, end = page.spans["iteration"]
        assert changed.replace("iteration: 6", "iteration:6", 1).count("iteration:6") >= 1
        assert (changed[:start], changed[len(changed) - len(text) + end :]) == (text[:start], text[end:])
    else:
        assert changed == text.replace(f"---{newline}", f"---{newline}iteration: 6{newline}", 1)
    assert normalize_space(FrontMatter(changed)["iteration"]) == "6"
