"""The host's own list of sessions (`claude agents --json`): what is read of it, and the plates that are made of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailhook.machines.plates import Status
from tailhook.plates.display import describe_plate
from tailhook.plates.listed import ListError, make_plates, parse_list

# What 2.1.329 printed: a session in the background, one in a terminal at a dialog, and one without a process.
WORKS = {
    "pid": 30327,
    "id": "c5336a7b",
    "cwd": "/src/shop",
    "kind": "background",
    "startedAt": 1795797253078,
    "sessionId": "c5336a7b-3f6c-46af-b846-3b93dee82017",
    "name": "tidy the cart",
    "status": "busy",
    "state": "working",
}
ASKS = {
    "pid": 77,
    "cwd": "/src/api",
    "kind": "interactive",
    "startedAt": 1795797253079,
    "sessionId": "b0b",
    "status": "waiting",
    "waitingFor": "permission prompt",
}
NOW = 1795797260000
FACTS = {"host": "here", "user": "me", "owner": "spool"}


def read(*entries):
    """Return the sessions in a list with these entries."""
    return parse_list(json.dumps(entries).encode())


def plates(*entries, before=(), now=NOW):
    """Return the plates of a list with these entries."""
    return make_plates(read(*entries), dict(before), FACTS, now)


def shown(entry, **changes):
    """Return the only plate as the boards show it."""
    (plate,) = plates({**entry, **changes}).values()
    return describe_plate(plate, "name")


def test_a_session_in_the_background_is_a_row():
    row = shown(WORKS)
    assert (row["session_id"], row["project_path"]) == (WORKS["sessionId"], "/src/shop")
    assert (row["status"], row["group"], row["headline"]) == (Status.RUNNING, "working", "tidy the cart")
    assert (row["pid"], row["host"], row["user"]) == (30327, "here", "me")
    assert row["resume"] == f"cd /src/shop && claude --resume {WORKS['sessionId']}"
    assert row["created_at"] == "2026-11-27T16:34:13.078Z"


def test_a_row_shows_that_it_is_from_the_list():
    row = shown(WORKS)
    assert row["last_event_type"] == "listed"
    assert row["activity"] == {
        "words": "from claude agents",
        "tool": "",
        "text": "",
        "choices": [],
        "is_code": False,
    }


def test_a_session_at_a_dialog_waits_for_the_person():
    row = shown(ASKS)
    assert (row["status"], row["group"]) == (Status.AWAITING_INPUT, "waits")
    assert (row["activity"]["words"], row["activity"]["text"]) == ("from claude agents:", "permission prompt")


@pytest.mark.parametrize(
    ("status", "state", "expected"),
    [
        ("busy", "working", Status.RUNNING),
        ("idle", "working", Status.IDLE),  # a turn has ended: 2.1.329 keeps "working"
        ("idle", "blocked", Status.IDLE),
        ("waiting", "blocked", Status.AWAITING_INPUT),
        (None, "blocked", Status.AWAITING_INPUT),
        (None, "working", Status.STARTING),  # no process of it is known
        (None, "failed", Status.ERROR),
        (None, "done", Status.IDLE),
        (None, "stopped", Status.CLOSED),
        (None, None, Status.STARTING),
        ("of a newer version", None, Status.STARTING),
        (5, ["working"], Status.STARTING),
    ],
)
def test_the_status_is_that_of_the_process(status, state, expected):
    assert read({**WORKS, "status": status, "state": state})[0].status is expected


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"claude: command disabled",
        b"{}",
        b"null",
        b'"[]"',
        b"[" * 100_000,
        b"[" * 200 + b"]" * 200,
        b'[{"sessionId": "a", "cwd": "/p"}',
        b"\xff\xfe[]",
    ],
)
def test_an_output_that_is_not_a_list_is_refused(output):
    with pytest.raises(ListError):
        parse_list(output)


@pytest.mark.parametrize(
    "changes",
    [
        {"sessionId": None},
        {"sessionId": 5},
        {"sessionId": ""},
        {"sessionId": ".."},
        {"sessionId": "a/../b"},
        {"sessionId": "$(id)"},
        {"sessionId": "a\x1b[2J"},
        {"sessionId": "-rf"},
        {"sessionId": "x" * 501},
        {"cwd": None},
        {"cwd": ["/p"]},
        {"cwd": ""},
        {"cwd": "relative"},
        {"cwd": "/" * 5000},
    ],
)
def test_an_entry_without_a_usable_id_or_folder_is_left_out(changes):
    assert [one.session_id for one in read({**WORKS, **changes}, ASKS)] == ["b0b"]


@pytest.mark.parametrize("entry", [None, 5, "text", [], [WORKS]])
def test_an_entry_that_is_not_an_object_is_left_out(entry):
    assert [one.session_id for one in read(entry, ASKS)] == ["b0b"]


@pytest.mark.parametrize("value", [None, True, -1, 0, (1 << 31) + 1, 1 << 40, 1.5, "5", [5], 10**30])
def test_a_process_id_that_cannot_be_is_unknown(value):
    assert read({**WORKS, "pid": value})[0].pid is None


@pytest.mark.parametrize("value", [1, 1 << 31])
def test_the_least_and_the_greatest_process_id_are_known(value):
    assert read({**WORKS, "pid": value})[0].pid == value


def test_the_longest_id_is_read():
    assert read({**WORKS, "sessionId": "x" * 500})


def test_a_list_is_not_read_without_end():
    many = [{**WORKS, "sessionId": f"s{number}"} for number in range(1005)]
    assert len(read(*many)) == 1000


def test_the_words_of_the_list_are_on_one_line_without_secrets_and_control_characters():
    token = "ghp_" + "a1B2" * 9
    one = read({**ASKS, "name": f"a\nb\x1b[31m {token}" + "x" * 5000, "waitingFor": "x\ud800\x00\r" * 999})[0]
    for words in (one.name, one.waits_for):
        assert words.isprintable()
        assert len(words) <= 200
        assert token not in words


def test_a_folder_with_control_characters_has_no_command_to_copy():
    assert shown(WORKS, cwd="/p\n&& rm -rf ~")["resume"] == ""


def test_a_start_in_the_future_is_now():
    assert shown(WORKS, startedAt=NOW + 1000)["created_at"] == shown(WORKS, startedAt=NOW)["created_at"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries({}, optional=dict.fromkeys(WORKS | ASKS, JSON)).map(lambda found: {**WORKS, **found})


@given(st.lists(ENTRY, max_size=4))
def test_every_list_can_be_shown(entries):
    for plate in plates(*entries).values():
        json.dumps({**describe_plate(plate, "name"), "status": plate["status"]})


def test_a_session_without_a_start_changes_only_if_the_list_changes():
    first = plates({**WORKS, "startedAt": None})
    assert plates({**WORKS, "startedAt": None}, before=first, now=NOW + 10_000) == first


def test_the_age_counts_from_the_change_of_the_status():
    first = plates(WORKS)
    second = plates(WORKS, before=first, now=NOW + 10_000)
    assert second == first
    third = plates({**WORKS, "status": "idle"}, before=second, now=NOW + 20_000)
    (plate,) = third.values()
    assert (plate["since"], plate["updated_at"]) == (NOW + 20_000, NOW + 20_000)
    (renamed,) = plates({**WORKS, "status": "idle", "name": "new"}, before=third, now=NOW + 30_000).values()
    assert (renamed["since"], renamed["updated_at"]) == (NOW + 20_000, NOW + 30_000)


@pytest.mark.parametrize(("since", "is_used"), [(1, True), (NOW, True), (0, False), (-1, False), (NOW + 1, False)])
def test_a_time_of_the_status_is_used_unless_it_is_in_the_future_or_before_1970(since, is_used):
    before = plates(WORKS, now=NOW - 50)
    one = read(WORKS)[0]._replace(since=since)
    (plate,) = make_plates([one], before, FACTS, NOW).values()
    assert plate["since"] == (since if is_used else NOW - 50)


def hidden(found):
    """Return plates that a person has hidden."""
    return {session: {**plate, "hidden_at": NOW} for session, plate in found.items()}


@pytest.mark.parametrize(
    ("status", "stays"),
    [("idle", True), ("waiting", True), ("busy", False)],
)
def test_a_hidden_session_is_shown_again_when_it_begins_to_work(status, stays):
    before = hidden(plates({**WORKS, "status": "idle"}))
    (plate,) = plates({**WORKS, "status": status}, before=before).values()
    assert (plate["hidden_at"] is not None) is stays


def test_a_session_that_is_hidden_at_work_stays_hidden():
    (plate,) = plates(WORKS, before=hidden(plates(WORKS))).values()
    assert plate["hidden_at"] == NOW
