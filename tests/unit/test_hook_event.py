"""One hook event: its stop, its machines, its transcript and the agent's last message, for every host."""

import json
import os

import pytest

from tailhook.hook import translated
from tailhook.hook.event import HookEvent, ends_with, has_marker_files
from tailhook.hook.translated import TranslatedEvent
from tailhook.hosts import codex, copilot, cursor, gemini


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Make a project and a home without a configuration; return the project."""
    monkeypatch.setattr("posix.environ", {b"HOME": os.fsencode(tmp_path / "home")})
    (tmp_path / "home").mkdir()
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def event(project):
    """Return a function that makes an event of Claude Code."""
    return lambda name="Stop", **fields: HookEvent({"cwd": str(project), **fields}, name)


def test_an_event_has_the_payloads_fields_and_the_projects_folders(event, project):
    one = event("", hook_event_name="SessionStart", session_id="mine")
    assert (one.name, one.session_id, one.broken, one.root) == ("SessionStart", "mine", "", str(project))
    assert one.folders == [str(project)]
    assert event("Stop", hook_event_name=None).name == "Stop"
    assert event(session_id=["mine"]).session_id == ""


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("Stop", {}, True),
        ("", {}, True),
        ("Stop", {"agent_id": ""}, True),
        ("Stop", {"agent_id": None}, True),
        ("Stop", {"agent_id": "a1"}, False),
        ("SubagentStop", {}, False),
        ("StopFailure", {}, False),
    ],
)
def test_only_an_agents_own_stop_is_one(event, name, fields, expected):
    assert event(name, **fields).is_stop() is expected


def configure(project, config):
    (project / ".claude").mkdir(exist_ok=True)
    (project / ".claude" / "tailhook.json").write_text(json.dumps(config))


def test_the_machines_are_the_configured_ones_in_their_order(event, project, tmp_path):
    default = event().machines()
    users = tmp_path / "home" / ".config" / "tailhook" / "config.json"
    users.parent.mkdir(parents=True)
    users.write_text('{"hook": {"machines": ["gate", "memory", "idle"]}}')
    assert event().machines() == ["idle", "gate", "memory"]
    configure(project, {"hook": {"machines": ["gate", "idle", "unknown", "gate"]}})
    assert event().machines() == ["idle", "gate"]
    configure(project, {"hook": {"machines": []}})
    assert event().machines() == []
    users.unlink()
    configure(project, {"hook": {"machines": "idle"}})
    assert event().machines() == default


def test_a_machine_is_concerned_if_its_marker_file_or_its_setting_is_there(event, project):
    assert [name for name in ("idle", "ralph", "triage", "gate") if event().concerns(name)] == []
    assert event().concerns("memory")
    (project / ".jwz").mkdir()
    configure(project, {"triage": {"state_dirs": ["state"]}, "gate": {"rules": [{"edited": ["*"], "ran": "make"}]}})
    assert [name for name in ("idle", "ralph", "triage", "gate") if event().concerns(name)] == [
        "idle",
        "triage",
        "gate",
    ]
    configure(project, {"triage": {"state_dirs": []}, "gate": {"rules": []}})
    assert not event().concerns("gate")
    assert has_marker_files("idle", ["/nowhere", str(project)])
    assert not has_marker_files("idle", [])


def test_a_broken_payload_concerns_only_a_machine_that_takes_one(project):
    for path in (".jwz", ".claude/ralph-loop.local.md"):
        (project / path).mkdir(parents=True)
    one = HookEvent({"cwd": str(project)}, "Stop", "the payload is empty")
    assert [name for name in ("idle", "ralph", "memory", "plates") if one.concerns(name)] == ["ralph"]


def test_a_setting_has_a_default(event, project):
    configure(project, {"hook": {"unbound": "refuse"}, "idle": {"stale_after": 0}})
    one = event()
    assert (one.setting("idle", "stale_after", 5), one.setting("idle", "x", 5), one.setting("x", "x")) == (0, 5, None)
    assert not one.unbound_acts
    configure(project, {"hook": {"unbound": "anything"}})
    assert event().unbound_acts


def test_a_folder_is_found_below_the_root_or_at_its_absolute_path(event, project):
    (project / "file").write_text("")
    assert event().folder(".git") == f"{project}/.git"
    assert event().folder(str(project)) == str(project)
    for path in ("file", "missing", "/nowhere", "file/below", "a\0b"):
        assert event().folder(path) is None


@pytest.mark.parametrize(("path", "expected"), [("/t", "/t"), ("", ""), (None, ""), (["/t"], ""), ("~", "~")])
def test_the_path_of_the_transcript_is_the_payloads(event, path, expected):
    assert event(transcript_path=path).transcript_path() == expected


def test_a_transcripts_path_may_begin_with_the_home(event, tmp_path):
    assert event(transcript_path="~/t.jsonl").transcript_path() == f"{tmp_path}/home/t.jsonl"


# ---- the last message --------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "bare", "expected"),
    [
        (b"one\n\nDone.", "Done.", True),
        (b"Done. \n\t", "Done.", True),
        ("Done.\u2003\u0085".encode(), "Done.", True),
        (b"Done.\x1c", "Done.", True),
        ("fin\u00e9".encode(), "\u00e9", True),
        ("\ud800".encode("utf-8", "surrogatepass"), "\ud800", True),
        (b"Done. More.", "Done.", False),
        (b"one", "Done, one", False),
        (b"", "Done.", False),
    ],
)
def test_whether_a_message_ends_with_the_payloads_words(written, bare, expected):
    assert ends_with(written, bare) is expected


def transcript(project, *texts, stamp="2026-11-20T10:00:00.000Z"):
    """Write a transcript of Claude Code with one message; return its path."""
    blocks = [{"type": "text", "text": text} for text in texts]
    message = {"id": "m", "role": "assistant", "content": blocks}
    path = project / "t.jsonl"
    path.write_text(json.dumps({"type": "assistant", "timestamp": stamp, "message": message}) + "\n")
    return str(path)


AT = 1795168800.0  # 2026-11-20T10:00:00Z


def test_the_whole_message_is_read_if_it_ends_with_the_payloads_block(event, project):
    path = transcript(project, "First.", "Done.\n")
    assert event(transcript_path=path, last_assistant_message=" Done. ").final_text() == b"First.\nDone.\n"
    assert event(transcript_path=path, last_assistant_message="Other.").final_text() == b"Other."
    assert event(transcript_path=path, last_assistant_message="\ud800").final_text() == b"\xed\xa0\x80"


@pytest.mark.parametrize("said", [None, "", " \n", 1, ["Done."]])
def test_without_words_in_the_payload_the_transcripts_are_taken(event, project, said):
    path = transcript(project, "First.", "Done.")
    assert event(transcript_path=path, last_assistant_message=said).final_text() == b"First.\nDone."


def test_a_message_that_is_older_than_asked_for_does_not_count(event, project):
    path = transcript(project, "First.", "Done.")
    assert event(transcript_path=path).final_text(AT) == b"First.\nDone."
    assert event(transcript_path=path).final_text(AT + 1) == b""
    assert event(transcript_path=path, last_assistant_message="Done.").final_text(AT + 1) == b"Done."


def test_a_message_without_a_time_counts(event, project):
    path = transcript(project, "Done.", stamp="soon")
    assert event(transcript_path=path).final_text(AT) == b"Done."


@pytest.mark.parametrize("path", ["", "/nowhere", "/dev/null/x", "a\0b", "."])
def test_a_transcript_that_cannot_be_read_has_no_message(event, path):
    one = event(transcript_path=path)
    assert one.newest_message() == ("unreadable", [])
    assert one.final_text() == b""


def test_the_transcript_is_read_once(event, project):
    one = event(transcript_path=transcript(project, "Done."))
    assert one.final_text() == b"Done."
    transcript(project, "Changed.")
    assert one.final_text() == b"Done."


# ---- other hosts -------------------------------------------------------------


@pytest.fixture
def other(project):
    """Return a function that makes an event of another host, with a transcript of these records (None: no file)."""

    def make(host, *records, **fields):
        path = project / "t.jsonl"
        path.write_text("".join(f"{record if isinstance(record, str) else json.dumps(record)}\n" for record in records))
        return TranslatedEvent(host, {"cwd": str(project), "transcript_path": str(path), **fields}, "stop", "", 1)

    return make


def said_by_copilot(text, stamp="2026-11-20T10:00:00.000Z"):
    return {"type": "assistant.message", "timestamp": stamp, "data": {"content": text}}


def test_the_newest_record_with_words_is_the_message(other):
    records = [said_by_copilot("Old."), said_by_copilot("Done."), said_by_copilot(" "), {"type": "end"}, "torn {"]
    assert other(copilot, *records).newest_message() == ("text", [(b"Done.", AT)])


@pytest.mark.parametrize("records", [(), ("torn {",), ({"type": "user"},), ({"type": "assistant.message"},)])
def test_a_transcript_without_words_is_unknown(other, records):
    assert other(copilot, *records).newest_message() == ("unknown", [])


def test_without_a_transcript_the_message_is_unknown(project):
    for path in (None, "", "/nowhere"):
        one = TranslatedEvent(copilot, {"cwd": str(project), "transcriptPath": path}, "agentStop", "", 1)
        assert one.newest_message() == ("unknown", [])


def test_a_late_transcript_is_read_again_until_it_has_the_stop(other, project, monkeypatch):
    slept = []

    def write_late(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            with (project / "t.jsonl").open("a") as out:
                out.write(json.dumps(said_by_copilot("Done.", "2026-11-20T10:00:05.000Z")) + "\n")

    monkeypatch.setattr(translated, "sleep", write_late)
    one = other(copilot, said_by_copilot("Old."), timestamp=(AT + 5) * 1000)
    assert one.newest_message()[1][0][0] == b"Done."
    assert slept == [translated.TRANSCRIPT_POLL_INTERVAL_S] * 2


def test_a_late_transcript_is_given_up_after_the_timeout(other, monkeypatch):
    monkeypatch.setattr(translated, "LATE_TRANSCRIPT_TIMEOUT_S", 0.03)
    one = other(copilot, said_by_copilot("Old."), timestamp=(AT + 5) * 1000)
    assert one.newest_message() == ("text", [(b"Old.", AT)])


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [("2026-11-20T10:00:00Z", AT * 1000), (5, 5), (2.5, 2.5), ("soon", 0), ("", 0), (None, 0), ([], 0), ({}, 0)],
)
def test_the_time_of_the_stop_is_the_payloads(other, stamp, expected):
    assert other(cursor, timestamp=stamp).stopped_at_ms() == expected


def test_of_several_answers_the_transcripts_last_one_is_taken(other):
    record = {"type": "gemini", "content": "Done."}
    assert other(gemini, record, prompt_response="First.\nDone.\n").final_text() == b"Done."
    assert other(gemini, record, prompt_response="First.\nOther.").final_text() == b"First.\nOther."


def test_a_host_without_words_in_its_payload_has_the_transcripts(other):
    assert other(copilot, said_by_copilot("Done.")).final_text() == b"Done."


def test_if_the_transcript_has_no_answer_all_of_the_payloads_are_taken(other):
    assert other(gemini, prompt_response="First.\nDone.").final_text() == b"First.\nDone."


def test_records_beyond_the_limit_are_not_read(other, project, monkeypatch):
    one = other(copilot, said_by_copilot("Old."), *[{"type": "end"}] * 3)
    with (project / "t.jsonl").open("rb") as file:
        monkeypatch.setattr(translated, "MAX_RECORDS", 3)
        assert one.read_newest(file.fileno(), 10_000) == ("unknown", [])
        monkeypatch.setattr(translated, "MAX_RECORDS", 4)
        assert one.read_newest(file.fileno(), 10_000) == ("text", [(b"Old.", AT)])
        assert one.read_newest(file.fileno(), 20) == ("unknown", [])


@pytest.mark.parametrize(
    ("host", "wanted", "expected"),
    [
        *[(host, code, code) for host in (codex, gemini) for code in (None, 0, 2)],
        *[(host, code, 0) for host in (cursor, copilot) for code in (None, 0, 2)],
    ],
)
def test_a_block_exits_with_0_if_the_host_does_not_read_the_code(other, host, wanted, expected):
    assert other(host).exit_code(wanted) == expected


def test_an_answer_is_one_line_and_nothing_if_the_host_has_no_word_for_it(other, capfd):
    other(cursor).answer({"decision": "block", "reason": "é\n"})
    assert json.loads(capfd.readouterr().out) == {"followup_message": "é\n"}
    other(cursor).answer({"systemMessage": "The loop ended."})
    assert capfd.readouterr().out == ""
