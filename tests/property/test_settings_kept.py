"""Whatever a settings file holds: hooks come and go, and nothing else moves."""

import json

from hypothesis import assume, given
from hypothesis import strategies as st

from tailhook._core import parse_json
from tailhook.install.hooks import find_ours, values_of, with_hooks, without_hooks
from tailhook.install.hooks_file import hooks_file_of

CLAUDE = hooks_file_of("claude-code")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
names = st.text(max_size=6).filter(lambda name: name not in ("hooks", "env"))
commands = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=12)})
groups = st.lists(st.fixed_dictionaries({"hooks": st.lists(commands, max_size=2)}) | values, max_size=3)
events = st.dictionaries(st.sampled_from(["Stop", "SessionStart", "PreToolUse"]), groups, max_size=3)
environments = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)
known = st.fixed_dictionaries({}, optional={"hooks": events, "env": environments})
machines = st.none() | st.lists(st.sampled_from(["idle", "memory", "triage"]), min_size=1, unique=True)
forms = st.sampled_from(["exec", "shell"])
caps = st.none() | st.integers(0, 99)


@st.composite
def texts(draw):
    """Settings in many a layout."""
    settings = {**draw(st.dictionaries(names, values, max_size=3)), **draw(known)}
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([(", ", ": "), (",", ":")]))
    start, newline, end = draw(st.sampled_from([("", "\n", ""), ("\ufeff", "\r\n", "\r\n"), (" ", "\n", "\n\n")]))
    text = json.dumps(settings, indent=indent, ensure_ascii=draw(st.booleans()), separators=separators)
    assume(text.isascii() or text == text.encode("utf-8", "replace").decode())  # no file holds a lone surrogate
    return start + text.replace("\n", newline) + end


@given(texts(), machines, forms, caps)
def test_hooks_put_in_and_taken_out_leave_every_byte(text, asked, form, cap):
    installed = with_hooks(CLAUDE, text, asked, form, cap)
    assert find_ours(CLAUDE, installed)
    assert without_hooks(CLAUDE, installed, text, cap) == text


@given(texts(), machines, forms, caps)
def test_hooks_put_in_twice_are_put_in_once(text, asked, form, cap):
    installed = with_hooks(CLAUDE, text, asked, form, cap)
    assert with_hooks(CLAUDE, installed, asked, form, cap) == installed


@given(texts(), machines, forms, machines, forms, caps)
def test_hooks_that_changed_go_as_those_that_came(text, asked, form, asked_then, form_then, cap):
    installed = with_hooks(CLAUDE, with_hooks(CLAUDE, text, asked, form), asked_then, form_then, cap, text)
    assert without_hooks(CLAUDE, installed, text, cap) == text


@given(texts(), names, values, machines)
def test_what_a_person_adds_between_stays_as_it_was_written(text, name, value, asked):
    added = f"{json.dumps(name)} :  {json.dumps(value)}"
    installed = with_hooks(CLAUDE, text, asked, "exec")
    at = installed.index("{") + 1
    left = without_hooks(CLAUDE, f"{installed[:at]}{added},{installed[at:]}", text)
    assert not find_ours(CLAUDE, left)
    assert added in left
    assert values_of(CLAUDE, left) == {name: parse_json(json.dumps(value)), **values_of(CLAUDE, text)}
