"""`tailhook explain` as a person runs it."""

import gzip
import json
import os
import re
import resource
import subprocess
import sys

import pytest
from support.host import ENVIRONMENT, HANGS_S, SANITIZER, assistant
from support.host_records import RECORDS
from support.range_server import served

from tailhook.hosts import RECORDED
from tailhook.transcripts.sources import GARBAGE

DONE = "<loop-done>COMPLETE</loop-done>"
HOSTILE = "</style><script>document.title='owned'</script><img src=x onerror=y>\x1b]0;owned\x07\u202e\x00&lt; \udc80"


def user(text, **fields):
    return {"type": "user", "message": {"role": "user", "content": text}, **fields}


@pytest.fixture
def session(project):
    """Return a project with a transcript of three messages and one record of another type."""
    project.write(
        user("Go on."),
        {"type": "system", "subtype": "x"},
        assistant("We decided.", id="m1"),
        assistant(f"All done.\n\n{DONE}\n\nBut not `{DONE}`.", id="m2"),
    )
    return project


def rewrite(session, *records):
    session.transcript.write_text("".join(f"{json.dumps(record)}\n" for record in records))


def explain(session, *words, **env):
    return session.tailhook("explain", str(session.transcript), *words, **env)


def test_the_newest_message_of_the_agent_is_explained(session):
    done = explain(session, COLUMNS="140")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"The newest message of {session.transcript.name}"
    assert lines[1].startswith("the agent's words · ")
    assert f"3 │ {DONE}" in lines
    assert f"  │ {'^' * 31} ✓ signal COMPLETE counts: alone on its line, outside of code" in lines
    ignored = "✗ signal COMPLETE does not count: in a code span, not alone on its line"
    assert any(line.endswith(ignored) for line in lines)
    assert lines[-2] == "Signal COMPLETE would end a loop (mode loop or issue)."
    assert "\x1b" not in done.stdout


def test_a_message_is_chosen_by_its_number(session):
    done = explain(session, "--message", "2")
    assert done.stdout.startswith("Message 2 of ")
    assert "DECISION +0.3" in done.stdout
    assert "a person's words" in explain(session, "--message", "1").stdout
    assert explain(session, "--message", "4").stderr == (
        f"tailhook: {session.transcript}: there is no message 4: it has 3\n"
    )


def test_the_newest_message_is_not_one_that_a_second_compaction_wrote_again(session):
    first, second = assistant("First.", id="m1"), assistant("Second.", id="m2")
    compaction = {"type": "system", "subtype": "compact_boundary"}
    rewrite(session, user("Go on."), first, {**compaction, "uuid": "c1"}, second, first, {**compaction, "uuid": "c2"})
    found = json.loads(explain(session, "--json").stdout)
    assert found["text"] == "Second."
    assert found["offset"] == json.loads(explain(session, "--message", "3", "--json").stdout)["offset"]


def test_a_record_is_chosen_by_its_offset(session):
    first, second, *_ = session.transcript.read_bytes().splitlines(keepends=True)
    done = explain(session, "--offset", str(len(first) + len(second)))
    assert done.stdout.startswith("The record of ")
    assert "We decided." in done.stdout
    for offset, reason in (
        (5, "no record begins at byte 5"),
        (10**9, "no record begins at byte 1000000000"),
        (len(first), f"the record at byte {len(first)} is not a message: its type is 'system'"),
    ):
        done = explain(session, "--offset", str(offset))
        assert (done.returncode, done.stderr) == (1, f"tailhook: {session.transcript}: {reason}\n")


@pytest.mark.parametrize("words", [("--message", "0"), ("--offset", "-1"), ("--message", "1", "--offset", "0")])
def test_wrong_usage_exits_with_2(session, words):
    done = explain(session, *words)
    assert (done.returncode, done.stdout) == (2, "")


def test_on_a_terminal_code_is_dim_and_marks_are_coloured(session):
    done = explain(session, FORCE_COLOR="1")
    assert f"\x1b[32m{DONE}\x1b[0m" in done.stdout
    assert "\x1b[2m`\x1b[0m" in done.stdout
    assert "\x1b" not in explain(session, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_lines_are_as_wide_as_the_terminal(session):
    session.write(assistant("word " * 100 + DONE, id="m3"))
    for width in (40, 80):
        rows = explain(session, COLUMNS=str(width)).stdout.splitlines()
        assert max(len(row) for row in rows if "│" in row) <= width


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (user("x", isMeta=True), "written by the host"),
        (user(f"<command-name>/clear</command-name>\n{DONE}"), "written by the host"),
        (user("x", isCompactSummary=True), "the summary of a compaction"),
        (assistant(DONE, id="m9", sidechain=True) | {"isSidechain": True}, "a sub-agent's message"),
    ],
)
def test_a_message_that_does_not_count_has_the_reason(session, record, words):
    rewrite(session, record)
    done = explain(session, "--message", "1")
    assert f"Nothing in this message counts: {words}." in done.stdout


RESULT = {"type": "tool_result", "tool_use_id": "0", "content": "x"}


@pytest.mark.parametrize(
    "record",
    [
        user("<ci-monitor-event> We decided."),
        user([RESULT, {"type": "text", "text": "We decided."}]),
        user("We decided.", origin={"kind": "channel"}),
    ],
)
def test_own_words_that_are_not_a_prompt_count_as_in_the_memory_machine(session, record):
    rewrite(session, record)
    done = explain(session, "--message", "1")
    assert "a person's words" in done.stdout
    assert "This message adds DECISION +0.3 of 1.9" in done.stdout
    assert "0.3  message 1, decided" in session.tailhook("memory", "explain", str(session.transcript)).stdout


def test_a_message_without_text_names_what_it_has(session):
    names = ("Bash", "Bash", "Read")
    blocks = [{"type": "tool_use", "id": str(place), "name": name, "input": {}} for place, name in enumerate(names)]
    result = {"type": "tool_result", "tool_use_id": "0", "content": "x"}
    rewrite(
        session,
        {"type": "assistant", "message": {"id": "m", "role": "assistant", "content": blocks}},
        user([result]),
    )
    assert "This message has no text: it uses Bash (2), Read.\n" in explain(session, "--message", "1").stdout
    assert "This message has no text: it has 1 result of tools.\n" in explain(session, "--message", "2").stdout


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "there is no record in it"),
        (b"\x00\xff not JSON\n{\n", "there is no record in it"),
        (
            json.dumps(user("x")).encode(),
            "no message of the agent has text. To explain another one, give its number: --message N",
        ),
    ],
)
def test_a_transcript_without_a_message_is_an_error(session, data, reason):
    session.transcript.write_bytes(data)
    done = explain(session)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"tailhook: {session.transcript}: {reason}\n")


@pytest.mark.parametrize(("name", "reason"), [("missing.jsonl", "No such file or directory"), (".", "Is a directory")])
def test_what_cannot_be_read_is_an_error(session, name, reason):
    path = session.folder / name
    done = session.tailhook("explain", str(path))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert reason in done.stderr or "not a" in done.stderr


@pytest.mark.parametrize("words", [(), ("--message", "9"), ("--offset", "3")])
def test_an_error_names_a_web_address_without_its_user_and_its_token(session, words):
    with served({"/s.jsonl?token=hunter2": json.dumps(user("x")).encode()}) as (address, _):
        done = session.tailhook("explain", f"{address.replace('//', '//me:hunter2@')}/s.jsonl?token=hunter2", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"tailhook: {address}/s.jsonl: ")
    assert "hunter2" not in done.stderr


def test_a_compressed_transcript_and_every_host_are_read(session, tmp_path):
    packed = tmp_path / "s.jsonl.gz"
    packed.write_bytes(gzip.compress(session.transcript.read_bytes()))
    assert "Signal COMPLETE would end" in session.tailhook("explain", str(packed)).stdout
    for host in RECORDED:
        first, others = RECORDS[host]
        path = tmp_path / f"{host}.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in (first, *(one for one, _ in others))))
        done = session.tailhook("explain", str(path), "--message", "1")
        assert f" · {host} · " in done.stdout, done.stderr


def test_bytes_behind_compressed_data_are_reported(session, tmp_path):
    packed = tmp_path / "s.jsonl.gz"
    packed.write_bytes(gzip.compress(session.transcript.read_bytes()) + b"garbage")
    for words in (("explain", str(packed)), ("anatomy", str(packed), "-o", str(tmp_path / "a.svg"))):
        done = session.tailhook(*words)
        assert done.returncode == 0
        assert done.stdout
        assert done.stderr == f"tailhook: {packed}: {GARBAGE}\n"


def test_the_facts_are_printed_for_a_program(session):
    done = explain(session, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    text, (code,), (counted, ignored) = found["text"], found["code"], found["marks"]
    assert text == f"All done.\n\n{DONE}\n\nBut not `{DONE}`."
    assert (code["kind"], text[code["start"] : code["end"]]) == ("span", f"`{DONE}`")
    assert text[ignored.pop("start") : ignored.pop("end")] == text[counted.pop("start") : counted.pop("end")] == DONE
    assert counted == {
        "kind": "signal",
        "name": "COMPLETE",
        "counts": True,
        "why": "alone on its line, outside of code",
    }
    assert (ignored["counts"], ignored["why"]) == (False, "in a code span, not alone on its line")
    assert found["ends"] == {"signal": "COMPLETE", "modes": ["loop", "issue"]}
    assert (found["host"], found["role"], found["records"], found["excluded"]) == ("claude-code", "assistant", 1, None)
    assert json.loads(explain(session, "--json", "--message", "2").stdout)["scores"] == {"DECISION": 0.3}
    assert explain(session, "--json", "--html", "a.html").returncode == 2


def test_an_output_that_is_not_utf8_gets_escapes(session):
    session.write(assistant("Größe decided.", id="m3"))
    usual = explain(session, COLUMNS="140").stdout
    ascii_only = explain(session, COLUMNS="140", PYTHONIOENCODING="ascii")
    assert (ascii_only.returncode, ascii_only.stderr) == (0, "")
    assert ascii_only.stdout == usual.encode("ascii", "backslashreplace").decode()
    facts = explain(session, "--json", PYTHONIOENCODING="ascii")
    assert facts.stdout.isascii()
    assert json.loads(facts.stdout) == json.loads(explain(session, "--json").stdout)


def test_a_full_disk_at_the_output_is_reported(session):
    for words in ([], ["--json"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "tailhook", "explain", str(session.transcript), *words],
                env=session.env,
                cwd=session.folder,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert (done.returncode, done.stderr) == (1, "tailhook: standard output: No space left on device\n")


# ---- the page ----------------------------------------------------------------


def test_the_page_stands_alone_and_escapes_everything(session, tmp_path):
    page = tmp_path / "page.html"
    hostile = tmp_path / "<b>&\u202e.jsonl"
    message = {"id": "m", "role": "assistant", "model": HOSTILE, "content": f"{HOSTILE}\n\n`{HOSTILE}` decided"}
    hostile.write_text(json.dumps({"type": "assistant", "message": message}))
    done = session.tailhook("explain", str(hostile), "--html", str(page))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"Wrote {page}.\n", "")
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<script|<img|[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert not re.search(r"<[^>]*\b(?:src|href|style|on\w+)=|url\(|@import", text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert "default-src 'none'" in text
    assert "prefers-color-scheme:dark" in text
    shown = session.tailhook("explain", str(hostile)).stdout
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", shown)


def test_a_page_without_marks_has_no_column_for_notes(session, tmp_path):
    page = tmp_path / "page.html"
    for text, column in (("Nothing.", '<ol class="text" '), ("We decided.", '<ol class="text noted" ')):
        session.write(assistant(text, id="m3"))
        explain(session, "--html", str(page))
        assert column in page.read_text()


@pytest.mark.parametrize("name", ["page.txt", "session.jsonl", "page"])
def test_another_ending_is_refused_so_that_no_transcript_is_overwritten(session, tmp_path, name):
    path = tmp_path / name
    path.write_text("before")
    done = explain(session, "--html", str(path))
    assert (done.returncode, path.read_text()) == (2, "before")
    assert "must end with .html" in done.stderr


def test_the_transcript_is_not_replaced_by_a_page_of_it(session, tmp_path):
    before = session.transcript.read_bytes()
    (tmp_path / "link.html").symlink_to(session.transcript)
    os.link(session.transcript, tmp_path / "hard.html")
    for name in ("link.html", "hard.html"):
        done = explain(session, "--html", str(tmp_path / name))
        assert (done.returncode, session.transcript.read_bytes()) == (2, before)
        assert done.stderr == f"tailhook: {tmp_path / name} is the transcript: give the name of another file\n"


def test_a_link_in_place_of_a_page_is_followed(session, tmp_path):
    (tmp_path / "real.html").write_text("before")
    (tmp_path / "real.html").chmod(0o640)
    (tmp_path / "usual").touch()
    for name, target in (("page.html", "real.html"), ("new.html", "made.html")):
        (tmp_path / name).symlink_to(target)
        assert explain(session, "--html", str(tmp_path / name)).returncode == 0
        assert (tmp_path / name).is_symlink()
        assert "<!DOCTYPE html>" in (tmp_path / target).read_text()
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("real.html", "made.html")] == [
        0o640,
        (tmp_path / "usual").stat().st_mode & 0o777,
    ]


def test_a_name_is_needed(session):
    done = session.tailhook("explain", "")
    assert (done.returncode, done.stderr) == (2, "tailhook: TRANSCRIPT is an empty name: give a file or a URL\n")
    done = explain(session, "--html", "")
    assert (done.returncode, done.stderr) == (2, "tailhook: FILE: the name of the file to write must end with .html\n")


def test_a_page_that_cannot_be_written_is_an_error_and_leaves_nothing(session, tmp_path):
    done = explain(session, "--html", str(tmp_path / "missing" / "page.html"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tailhook: {tmp_path / 'missing' / 'page.html'}: No such file or directory\n"
    full = subprocess.run(
        [sys.executable, "-m", "tailhook", "explain", str(session.transcript), "--html", str(tmp_path / "page.html")],
        env={**ENVIRONMENT, **session.env},
        cwd=session.folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )
    assert full.returncode == 1
    assert "File too large" in full.stderr
    assert [path for path in os.listdir(tmp_path) if path.startswith("page.html")] == []


@pytest.mark.system
@pytest.mark.skipif(SANITIZER, reason="a sanitizer needs memory of its own")
def test_the_newest_message_of_a_huge_transcript_needs_little_memory(session):
    last = session.transcript.read_bytes()
    with session.transcript.open("wb") as file:
        file.write(b'{"type":"user","message":{"content":"x"}}\n')
        file.seek(2 << 30)
        file.write(b"\n" + last)
    limit = 400 << 20
    done = subprocess.run(
        [sys.executable, "-m", "tailhook", "explain", str(session.transcript)],
        env={**ENVIRONMENT, **session.env},
        cwd=session.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Signal COMPLETE would end" in done.stdout
