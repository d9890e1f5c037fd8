"""What each host ships about its hooks (contracts/HOST.json) beside what tailhook uses of it (contracts/uses.toml).

An event or a field that tailhook does not know fails here, as soon as `make contracts` has written it.
"""

import ast
import inspect
import json
import re
import tomllib
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tailhook.hook.plates import KINDS, NOTIFICATIONS
from tailhook.hook.process import block_answer
from tailhook.hook.terminal_notices import SEQUENCES
from tailhook.hook.translated import translate_event_name
from tailhook.hosts import DEFAULT, NAMES, find_host, gemini
from tailhook.install.hooks_file import hooks_file_of
from tailhook.machines import Verdict

ROOT = Path(__file__).parents[2]
CONTRACTS = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "contracts").glob("*.json"))}
USES = tomllib.loads((ROOT / "contracts" / "uses.toml").read_text())
READ = USES["read"]
READERS = {name: find_host(name) for name in CONTRACTS}
EVENTS_OF_PLATES = {"Notification", "PostCompact", *(name for name in KINDS if name[:1].isupper())}
HOOK = [*(ROOT / "src/tailhook/hook").glob("*.py"), ROOT / "src/tailhook/machines/waiting.py"]
# The variables of these modules that hold a payload or a part of it, and where the part is.
VARIABLES = {"payload": "", "theirs": "", "task": "background_tasks[].", "wake_up": "session_crons[]."}
BLOCK = {"decision": "block", "reason": "Go on.", "systemMessage": "tailhook: a loop runs"}


def expand(entries):
    """Return the entries of a contract with the members that all of them have."""
    shared = entries["*"]
    return {
        name: {part: None if found is None else {**shared[part], **found} for part, found in entry.items()}
        for name, entry in entries.items()
        if name != "*"
    }


def registered(name):
    """Return the host's events that get a hook."""
    file = hooks_file_of(READERS[name].NAME)
    return {file.stop_event, file.repeat_event, file.prompt_event, *file.reported_events} - {""}


def in_claudes_words(name, event):
    """Return Claude Code's name of an event."""
    return event if name == DEFAULT else translate_event_name(READERS[name], event)


def fields_of(name):
    """Return Claude Code's names of fields by the host's."""
    return {} if name == DEFAULT else READERS[name].FIELDS


def module_of(name):
    """Return the path of the module that describes a host."""
    host = READERS[name]
    return getattr(host, "__file__", None) or inspect.getfile(type(host))


def rows(name, part):
    """Yield each member of the payloads or answers of the host's registered events: event, member, type."""
    for event, entry in expand(CONTRACTS[name]["events"]).items():
        if event in registered(name):
            yield from ((event, member, kind) for member, kind in (entry[part] or {}).items())


def is_read(name, event, member):
    """Return whether the hook or the host's module reads a member of an event's payload."""
    top = re.split(r"[.\[]", member, maxsplit=1)[0]
    own_name = fields_of(name).get(top, top) + member[len(top) :]
    events = READ.get(own_name, [])
    return {"*", in_claudes_words(name, event)} & set(events) or own_name in members_read_in(module_of(name))


def listed(name, part):
    """Return what a section of a host lists with a reason: names, or "EVENT.MEMBER"."""
    found = []
    for group in USES[name].get(part, []):
        assert group["why"], f"an entry of {name}.{part} has no reason"
        found += group.get("names", [])
        members = {member: events for member, events in group.items() if member not in ("why", "names")}
        found += [f"{event}.{member}" for member, events in members.items() for event in events]
    assert len(found) == len(set(found)), f"{name}.{part} lists something twice"
    return set(found)


def entry_of(name, part, event, member):
    """Return the entry of a member of an event or of its object, "" if neither is listed.

    "*" stands for every event, only of a member that all events of the contract have.
    """
    declared = [entry[part] for entry in expand(CONTRACTS[name]["events"]).values() if entry[part] is not None]
    names, shared = listed(name, part), set.intersection(*map(set, declared))
    ends = [end for end, letter in enumerate(member) if letter == "."] + [len(member)]
    for path in (member[:end].removesuffix("[]") for end in ends):
        for key in (f"{event}.{path}", *([f"*.{path}"] if path in shared else [])):
            if key in names:
                return key
    return ""


def compare(name, part, used, unused):
    """Fail if a member is neither used nor listed, or if an entry lists nothing or what is used.

    An object with members in the contract is judged by them.
    """
    objects = {(event, member[:end]) for event, member in unused for end in range(len(member)) if member[end] in ".["}
    entries = {key: entry_of(name, part, *key) for key in unused if key not in objects}
    assert [f"{event}.{member}" for (event, member), entry in entries.items() if not entry] == []
    assert listed(name, part) - set(entries.values()) == set()
    assert listed(name, part) & {f"{event}.{member}" for event, member in used} == set()


# ---- events ------------------------------------------------------------------


def test_each_host_has_a_contract_if_its_package_is_to_be_had():
    assert set(NAMES) - CONTRACTS.keys() == {"cursor", "antigravity", "devin"}
    assert CONTRACTS.keys() == READERS.keys() == USES.keys() - {"read"}


@pytest.mark.parametrize("name", READERS)
def test_each_event_of_a_host_is_used_or_listed_with_a_reason(name):
    events = CONTRACTS[name]["events"].keys() - {"*"}
    assert registered(name) <= events
    assert events - registered(name) == listed(name, "events")


def test_each_used_event_has_a_kind_for_the_board_and_each_kind_an_event():
    assert {in_claudes_words(name, event) for name in READERS for event in registered(name)} == EVENTS_OF_PLATES


@pytest.mark.parametrize("name", READERS)
def test_each_matcher_is_a_value_that_the_host_sends(name):
    file = hooks_file_of(name)
    matchers = {**file.reported_events, file.repeat_event: file.repeat_matcher}
    for event in (event for event, matcher in matchers.items() if matcher not in (None, "*", "")):
        kinds = [
            kind
            for at, member, kind in rows(name, "fields")
            if at == event and fields_of(name).get(member, member) in ("source", "trigger")
        ]
        assert any(kind == "any" or f"'{matchers[event]}'" in kind for kind in kinds), event


def test_each_notification_of_gemini_has_a_kind():
    kinds = expand(CONTRACTS["gemini"]["events"])["Notification"]["fields"]["notification_type"]
    for kind in kinds.split(" | "):
        payload = {"notification_type": kind.strip("'")}
        gemini.add_fields(payload)
        assert payload["notification_type"] in NOTIFICATIONS


# ---- fields ------------------------------------------------------------------


@pytest.mark.parametrize("name", READERS)
def test_each_field_of_a_used_event_is_read_or_listed_with_a_reason(name):
    found = [(event, member) for event, member, _ in rows(name, "fields")]
    used = [key for key in found if is_read(name, *key)]
    compare(name, "fields", used, [key for key in found if key not in used])


def test_the_hook_reads_the_fields_that_the_table_names():
    assert set().union(*map(members_read_in, HOOK)) == READ.keys()


def test_the_hook_names_no_field_that_it_does_not_read():
    texts = {node.value for path in HOOK for node in ast.walk(tree_of(path)) if isinstance(node, ast.Constant)}
    members = {member for name in READERS for _, member, _ in rows(name, "fields")}
    in_transcripts = {"input_tokens", "message_id"}  # the hook reads them there
    assert {member for member in members & texts if "_" in member} <= READ.keys() | in_transcripts  # others are words


@cache
def tree_of(path):
    """Return a module's syntax tree."""
    return ast.parse(Path(path).read_text())


@cache
def members_read_in(path):
    """Return the members of payloads that a module reads."""
    return {member for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call) for member in read_by(node)}


def read_by(call):
    """Yield the members of a payload that a call of `get_text`, of its `get` or of `map` with that reads."""
    name = ast.unparse(call.func)
    if name in ("get_text", "text_in"):
        place, *keys = call.args
    elif name == "map" and ast.unparse(call.args[0]).endswith(".get"):
        place, keys = call.args[0].value, getattr(call.args[1], "elts", [])
    elif name.endswith(".get"):
        place, keys = call.func.value, call.args[:1]
    else:
        return
    prefix = VARIABLES.get(ast.unparse(place).rpartition(".")[2])
    yield from (f"{prefix}{key.value}" for key in keys if prefix is not None and isinstance(key, ast.Constant))


@pytest.mark.parametrize("field", READ)
def test_each_read_field_is_sent_by_a_host(field):
    sent = [
        (name, event)
        for name in READERS
        for event, member, _ in rows(name, "fields")
        if field in (member, fields_of(name).get(member)) and is_read(name, event, member)
    ]
    assert sent


@pytest.mark.parametrize("name", READERS)
def test_each_field_that_a_module_names_is_declared_or_listed_with_its_proof(name):
    used = {*fields_of(name), *READERS[name].HOOKS_FILE["payload"]}
    undeclared = used - {member for _, member, _ in rows(name, "fields")}
    assert {f"fields.{field}" for field in undeclared} == {
        one for one in listed(name, "undeclared") if one.startswith("fields.")
    }


@pytest.mark.parametrize("name", READERS)
def test_each_used_event_declares_its_fields_or_is_listed_with_its_proof(name):
    events = expand(CONTRACTS[name]["events"])
    undeclared = {f"events.{event}" for event in registered(name) if events[event]["fields"] is None}
    assert undeclared == {one for one in listed(name, "undeclared") if one.startswith("events.")}


# ---- answers -----------------------------------------------------------------


def answers(name):
    """Return the members of tailhook's answers in the host's words, with their values, by event."""
    host, file = READERS[name], hooks_file_of(READERS[name].NAME)
    found = {file.stop_event: members_of(host.answer(BLOCK))}
    if name == "claude-code":  # newer versions get a block as a context
        found["Stop"] |= members_of(block_answer(Verdict("block", "", reason="Go on."), 0, (), takes_context=True))
        found["Stop"]["terminalSequence"] = SEQUENCES["title"]
    for event in {file.repeat_event, file.prompt_event} & registered(name):
        inner = {"hookEventName": event, "additionalContext": "A loop runs."}
        found[event] = members_of(host.answer({"hookSpecificOutput": inner}))
    return found


def members_of(answer, prefix=""):
    """Return the members of an answer by path. The contracts leave out the event's own name."""
    found = {}
    for key, value in answer.items():
        found[f"{prefix}{key}"] = value
        if isinstance(value, dict):
            found |= members_of(value, f"{prefix}{key}.")
    return {member: value for member, value in found.items() if not member.endswith(".hookEventName")}


@pytest.mark.parametrize("name", READERS)
def test_each_answer_is_one_that_the_host_takes(name):
    events = expand(CONTRACTS[name]["events"])
    for event, given in answers(name).items():
        for member, value in given.items():
            if f"answers.{member.partition('.')[0]}" in listed(name, "undeclared"):
                assert member not in events[event]["answers"]
                continue
            kinds = events[event]["answers"][member].removesuffix("?").split(" | ")
            kind = "object" if isinstance(value, dict) else "string"
            assert {kind, "any", f"'{value}'"} & set(kinds), (event, member)


@pytest.mark.parametrize("name", READERS)
def test_each_possible_answer_to_an_answered_event_is_given_or_listed_with_a_reason(name):
    given = answers(name)
    found = [(event, member) for event, member, _ in rows(name, "answers") if event in given]
    used = [(event, member) for event, member in found if member in given[event]]
    compare(name, "answers", used, [key for key in found if key not in used])


# ---- handlers ----------------------------------------------------------------


@pytest.mark.parametrize("name", READERS)
def test_each_kind_of_handler_and_each_member_is_known_or_listed_with_a_reason(name):
    file = hooks_file_of(name)
    known = {kind: {*members, *file.hook_member_types} for kind, members in file.hook_types.items()}
    written = {*file.hook_members, *chain(*file.event_members.values()), *file.command_members}
    known["command"] = {*known.get("command", ()), *written, *(["args"] if file.has_exec_form else [])}
    handlers = {kind: entry["fields"] for kind, entry in expand(CONTRACTS[name]["handlers"]).items()}
    odd = handlers.keys() - known
    odd |= {f"{kind}.{member}" for kind in handlers.keys() & known for member in handlers[kind].keys() - known[kind]}
    assert odd == listed(name, "handlers")
    undeclared = {f"handlers.{member}" for member in known["command"] - handlers.get("command", {}).keys()}
    assert undeclared == {one for one in listed(name, "undeclared") if one.startswith("handlers.")}
