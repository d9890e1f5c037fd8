"""Every kind of value at every place of every state, config and payload: the hook and the other machines still answer.

`make fuzz` tries every content of a place; the suite tries every 24th of them.
"""

import json

import pytest
from support.every_value import DECIDED, GATE, MACHINES, PLACES, Surroundings, check, contents
from support.long_runs import sample

from tailhook.hook.machines import MACHINES as REGISTRY


@pytest.fixture(scope="module")
def surroundings():
    one = Surroundings()
    yield one
    one.remove()


def test_every_machine_has_something_to_decide(surroundings):
    original = surroundings.originals()["git head"]
    outcome = surroundings.run("git head", original)
    assert outcome.decided + surroundings.run("git head", original, GATE).decided == list(DECIDED.items())
    assert b'"git_branch":"main"' in outcome.spool


def test_the_configuration_has_every_key_of_a_machine(surroundings):
    config = json.loads(surroundings.originals()["user config"])
    known = {name: set(machine["keys"]) for name, machine in REGISTRY.items() if "keys" in machine}
    assert {name: set(keys_of(config[name])) for name in known} == known


def keys_of(section):
    """Yield the keys of a section; those of an object inside of it have a dot."""
    for key, value in section.items():
        yield from (f"{key}.{inner}" for inner in value) if isinstance(value, dict) else (key,)


@pytest.mark.parametrize("place", PLACES)
def test_a_value_of_any_kind_changes_no_other_machines_decision(surroundings, report, place):
    tried = sample(contents(place, surroundings.originals()[place]), 24)
    for content in tried:
        try:
            check(surroundings, place, content)
        except Exception as error:
            raise AssertionError(f"{place}: {content[:500]!r}") from error
    report(f"every value: {len(tried):,} contents of the {place}")


REMINDERS = {"idle": "A loop is running in this session", "ralph": "A ralph loop is running in this session"}


@pytest.mark.parametrize("place", ["idle body", "idle store", "idle file", "ralph file"])
def test_after_a_compaction_one_loops_state_does_not_silence_the_other(surroundings, place):
    payload = b'{"hook_event_name": "SessionStart", "source": "compact", "session_id": "mine", "cwd": "%s"}'
    (other,) = {"idle", "ralph"} - {place.split()[0]}
    for content in sample(contents(place, surroundings.originals()[place]), 4):
        surroundings.write(place, content)
        surroundings.payload = payload % str(surroundings.project).encode()
        outcome = surroundings.run_hook(list(MACHINES))
        outcome.check_answer()
        assert REMINDERS[other] in outcome.stdout.decode(), (content[:500], outcome.stderr)
