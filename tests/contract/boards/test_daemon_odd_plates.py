"""A plate that cannot be shown, as another version or a damaged file leaves one, hides no other plate."""

import sqlite3
import threading
from contextlib import closing

import pytest
from support.daemon import STARTS, daemon_in, sse
from support.host import HANGS_S

FAR = 10**18  # a time after the year 9999
ODD = [
    ("status", "of-a-newer-version"),
    ("tools", '[["of another version"]]'),
    ("tools", "not json"),
    ("tools", '"a text"'),
    ("terminal", "not json"),
    ("created_at", FAR),
    ("since", -FAR),
    ("prompted_at", FAR),
    ("background", "many"),
]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """Yield a running daemon with the plates `good` and `odd`; both wait for a person."""
    with daemon_in(tmp_path_factory.mktemp("odd")) as one:
        one.is_forked = False
        yield one.start()


@pytest.fixture
def spoil(daemon):
    """Call it with a column and a value: the plate `odd` has that value. Both plates are deleted at the end."""
    for session in ("good", "odd"):
        daemon.post("permission_asked", session, tool_name="Bash", tool_params={"command": "make"})

    def write(column, value):
        with closing(sqlite3.connect(daemon.state / "plates.db", timeout=STARTS)) as connection, connection:
            connection.execute(f"UPDATE plates SET {column} = ? WHERE session_id = 'odd'", (value,))

    yield write
    for session in ("good", "odd"):
        assert daemon.ask("DELETE", f"/plates/{session}").status_code == 200


def names_in(plates):
    return {plate["session_id"] for plate in plates}


@pytest.mark.parametrize(("column", "value"), ODD)
def test_the_others_are_in_every_answer(daemon, spoil, column, value):
    spoil(column, value)
    plates, summary = daemon.ask("GET", "/plates"), daemon.ask("GET", "/summary")
    assert (plates.status_code, summary.status_code) == (200, 200)
    assert "good" in names_in(plates.json())
    assert "good" in names_in(summary.json()["waiting"])
    assert daemon.ask("GET", "/plates/good?events=9").status_code == 200
    with daemon.client() as client, client.stream("GET", "/stream") as answer:
        name, sent = next(sse(answer))
    assert (name, "good" in names_in(sent)) == ("plates", True)


def test_a_change_of_an_odd_plate_ends_no_stream(daemon, spoil):
    names, is_following = [], threading.Event()

    def follow():
        with daemon.client() as client, client.stream("GET", "/stream") as answer:
            for name, data in sse(answer):
                is_following.set()
                if name == "plate":
                    names.append(data["session_id"])
                    if data["session_id"] == "good":
                        return

    spoil("prompted_at", FAR)
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert is_following.wait(HANGS_S)
    daemon.post("tool_start", "odd", tool_name="Read")
    daemon.post("prompt_submit", "good")
    thread.join(HANGS_S)
    assert names == ["good"]


def test_a_plate_that_cannot_be_shown_is_named_once_on_stderr(own):
    own.is_forked = False
    own.start().post("permission_asked", "good")
    own.post("permission_asked", "odd\x1b[31m")
    with closing(sqlite3.connect(own.state / "plates.db", timeout=STARTS)) as connection, connection:
        connection.execute("UPDATE plates SET status = 'of-a-newer-version' WHERE session_id LIKE 'odd%'")
    for _ in range(3):
        assert names_in(own.ask("GET", "/plates").json()) == {"good"}
        assert own.ask("GET", "/summary").status_code == 200
    own.process.terminate()
    _, said = own.process.communicate(timeout=HANGS_S)
    reason = "ValueError(\"'of-a-newer-version' is not a valid Status\")"
    assert said == f"tailhook: the session odd\\x1b[31m cannot be shown: {reason}\n"
