"""Whatever is in a settings file: hooks come and go, and nothing else changes."""

import json

from hypothesis import assume, given
from hypothesis import strategies as st

from tailhook._core import parse_json
from tailhook.install.hooks import find_ours, values_of, with_hooks, without_hooks
from tailhook.install.hooks_file import HooksFile, hooks_files

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
names = st.text(max_size=6).filter(lambda name: name not in ("hooks", "env"))
commands = st.fixed_dictionaries({}, optional={name: st.text(max_size=12) for name in ("type", "command", "bash")})
groups = st.lists(st.fixed_dictionaries({"hooks": st.lists(commands, max_size=2)}) | commands | values, max_size=3)
environments = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)
machines = st.none() | st.lists(st.sampled_from(["idle", "memory", "triage", "plates"]), min_size=1, unique=True)
caps = st.none() | st.integers(0, 99)
files = st.sampled_from([file for file in hooks_files() if not file.in_toml])
toml_files = st.sampled_from([file for file in hooks_files() if file.in_toml])
TOML_ENTRY = '[[hooks]]\nevent = "{}"\ncommand = """a\n[[hooks]]\n"""\n'
toml_parts = st.lists(
    st.sampled_from(
        ["# é\n", "\n", "\n\n", '[model]\nname = "[[hooks]]"\n', "[providers.x]\n# of x\nkey = [\n 1,\n]\n"]
    )
    | st.sampled_from(["Stop", "Interrupt"]).map(TOML_ENTRY.format),
    max_size=6,
    unique_by=lambda part: part if part.startswith(("[model", "[providers")) else object(),
)


@st.composite
def asked(draw, file: HooksFile):
    """Return the options of an install: the machines and the form."""
    return draw(machines), draw(st.sampled_from(["exec", "shell"] if file.has_exec_form else ["shell"]))


@st.composite
def texts(draw, file: HooksFile):
    """Return the text of a host's hooks file, in one of many layouts."""
    start, newline, end = draw(st.sampled_from([("", "\n", ""), ("\ufeff", "\r\n", "\r\n"), (" ", "\n", "\n\n")]))
    if file.in_toml:
        return start + "".join(draw(toml_parts)).replace("\n", newline) + end
    events = st.dictionaries(st.sampled_from([*file.events, "another"]), groups, max_size=3)
    known = {
        "hooks": events,
        "env": environments,
        **{name: st.just(file.file_members[name]) for name in file.file_members},
    }
    settings = {**draw(st.dictionaries(names, values, max_size=3)), **draw(st.fixed_dictionaries({}, optional=known))}
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([(", ", ": "), (",", ":")]))
    text = json.dumps(settings, indent=indent, ensure_ascii=draw(st.booleans()), separators=separators)
    assume(text.isascii() or text == text.encode("utf-8", "replace").decode())  # no file holds a lone surrogate
    return start + text.replace("\n", newline) + end


@given(st.data(), files | toml_files, caps)
def test_hooks_put_in_and_taken_out_leave_every_byte(data, file, cap):
    text = data.draw(texts(file))
    installed = with_hooks(file, text, *data.draw(asked(file)), cap)
    assert find_ours(file, installed)
    assert without_hooks(file, installed, text, cap) == text


@given(st.data(), files | toml_files, caps)
def test_hooks_put_in_twice_are_put_in_once(data, file, cap):
    wanted = data.draw(asked(file))
    installed = with_hooks(file, data.draw(texts(file)), *wanted, cap)
    assert with_hooks(file, installed, *wanted, cap) == installed


@given(st.data(), files | toml_files, caps)
def test_hooks_that_changed_go_as_those_that_came(data, file, cap):
    text = data.draw(texts(file))
    first = with_hooks(file, text, *data.draw(asked(file)))
    installed = with_hooks(file, first, *data.draw(asked(file)), cap, text)
    assert without_hooks(file, installed, text, cap) == text


@given(st.data(), files, names, values)
def test_what_a_person_adds_between_stays_as_it_was_written(data, file, name, value):
    text = data.draw(texts(file))
    added = f"{json.dumps(name)} :  {json.dumps(value)}"
    installed = with_hooks(file, text, *data.draw(asked(file)))
    at = installed.index("{") + 1
    left = without_hooks(file, f"{installed[:at]}{added},{installed[at:]}", text)
    assert not find_ours(file, left)
    assert added in left
    assert values_of(file, left) == {name: parse_json(json.dumps(value)), **values_of(file, text)}
