"""Transcripts of any size: the daemon reads them within the bounds of a hook, and one does not hinder the others."""

import json
import os
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from support.daemon import spooled, wait_until
from support.host import HANGS_S, assistant
from support.long_runs import IS_LONG

from tailhook.plates.transcript_ends import MAX_MESSAGE_CHARS

pytestmark = pytest.mark.system

# Of memory, for the whole daemon: 75 MB without a session, and 65 MB for each of the two transcripts that it may read
# at once, one for a board and one to check a session. A whole line would need 150 MB more.
MAX_PEAK_MB = 250
MB = 1 << 20
LINE_MB = 300 if IS_LONG else 150


def endless_line(path):
    path.touch()
    os.truncate(path, 1 << 40)


def hole(path):
    path.write_text(json.dumps(assistant("Before the hole.", at=1)) + "\n")
    os.truncate(path, 20 << 30)


def one_line(kind):
    def write(path):
        before, _, after = json.dumps({**assistant("X", at=time.time() + 60), "type": kind}).partition("X")
        with path.open("w") as out:
            out.write(before.replace('"role": "assistant"', f'"role": "{kind}"'))
            for _ in range(LINE_MB):
                out.write("x" * MB)
            out.write(f"{after}\n")

    return write


def many_values(path):
    """Write a line as long as a hook reads, whose decoded form takes thirty times its size."""
    record = {**assistant("All done.", at=time.time() + 60), "more": 0}
    record["message"]["stop_reason"] = "end_turn"
    text = json.dumps(record)
    path.write_text(text.replace('"more": 0', '"more": [' + "[]," * (5 * MB) + "0]") + "\n")


def long_words(path):
    path.write_text(json.dumps(assistant("\u4e2d" * (5 * MB), at=1), ensure_ascii=False) + "\n")


HARD = {
    "an endless line": endless_line,
    "a hole of 20 GB": hole,
    "an assistant's long line": one_line("assistant"),
    "a user's long line": one_line("user"),
    "a line of many values": many_values,
    "last words of 15 MB": long_words,
}


def peak_mb(daemon):
    """Return how much memory the daemon had at most."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) >> 10


def waiting_since(own, name, transcript, seconds_ago):
    """Report a session that has been waiting for a person for `seconds_ago`."""
    at = int((time.time() - seconds_ago) * 1000)
    fields = {"event_type": "permission_asked", "transcript_path": str(transcript)}
    own.spool(spooled(at, name, **fields))


def test_huge_transcripts_cost_little_and_the_others_are_looked_at(own, tmp_path, report):
    own.start()
    ordinary = tmp_path / "ordinary.jsonl"
    ordinary.write_text(json.dumps(assistant("Go on.")) + "\n")
    try:
        for name, make in HARD.items():
            make(tmp_path / f"{name}.jsonl")
            waiting_since(own, name, tmp_path / f"{name}.jsonl", 60)
        waiting_since(own, "ordinary", ordinary, 60)
        wait_until(lambda: {*HARD, "ordinary"} <= own.plates().keys())
        for name in HARD:
            transcript = tmp_path / f"{name}.jsonl"
            own.post("tool_start", f"{name}, running", transcript_path=str(transcript))
            started = time.monotonic()
            details = own.ask("GET", f"/plates/{quote(f'{name}, running')}?events=10")
            took = time.monotonic() - started
            assert details.status_code == 200
            assert len(details.json()["last_message"] or "") <= MAX_MESSAGE_CHARS
            size = transcript.stat().st_size // MB
            report(f"daemon: {name}, {size:,} MB: {peak_mb(own)} MB of memory until then, details in {took:.2f} s")
        for name in (*HARD, "ordinary"):  # their files have changed since
            wait_until(lambda name=name: own.plates()[name]["status"] == "idle")
        assert own.process.poll() is None
        assert peak_mb(own) < MAX_PEAK_MB
    finally:
        for name in HARD:
            (tmp_path / f"{name}.jsonl").unlink(missing_ok=True)


def test_the_last_words_are_cut_for_a_reader_that_takes_no_more(own, tmp_path):
    transcript = tmp_path / "long.jsonl"
    long_words(transcript)
    own.start().post("stop", transcript_path=str(transcript))
    said = own.ask("GET", "/plates/s?events=1").json()["last_message"]
    assert said == "\u4e2d" * (MAX_MESSAGE_CHARS - 2) + "\n…"


# ---- a plate that cannot be checked ----------------------------------------------


ERRORS = {"m": "MemoryError()", "r": "RecursionError()", "k": "KeyError('odd')", "o": "OSError(5, 'I/O error')"}


def test_what_one_plate_raises_is_that_plates_alone_and_logged_once(own, tmp_path):
    """Looks at some transcripts fail, each in another way."""
    looks = tmp_path / "looks"
    (own.home / "site").mkdir()
    (own.home / "site" / "sitecustomize.py").write_text(
        "import tailhook.plates.looks as looks\n"
        "look_at = looks.look_at\n"
        "def fail(path, since):\n"
        "    if 'bad' not in path: return look_at(path, since)\n"
        "    name = path.removesuffix('.jsonl')[-1]\n"
        f"    open({str(looks)!r}, 'a').write(name)\n"
        f"    raise {{{', '.join(f'{name!r}: {error}' for name, error in ERRORS.items())}}}[name]\n"
        "looks.look_at = fail\n"
    )
    own.env["PYTHONPATH"] = str(own.home / "site")
    own.start()
    bad = [f"bad-{name}" for name in ERRORS]
    for name in ("a", *bad, "z"):
        transcript = tmp_path / f"{name}.jsonl"
        transcript.write_text(json.dumps(assistant("Go on.")) + "\n")
        waiting_since(own, name, transcript, 60)
    wait_until(lambda: len(own.plates()) == len(bad) + 2)
    wait_until(lambda: {own.plates()[name]["status"] for name in "az"} == {"idle"})
    assert sorted(looks.read_text()) == sorted(ERRORS)
    later = tmp_path / "later.jsonl"
    later.write_text(json.dumps(assistant("Go on.")) + "\n")
    waiting_since(own, "later", later, 60)
    wait_until(lambda: own.plates().get("later", {}).get("status") == "idle")  # by the next check
    assert sorted(looks.read_text()) == sorted(ERRORS)  # each is looked at again only after it has changed
    for name in bad:
        os.utime(tmp_path / f"{name}.jsonl", (1, 1))
    wait_until(lambda: sorted(looks.read_text()) == sorted([*ERRORS, *ERRORS]))
    assert {own.plates()[name]["status"] for name in bad} == {"awaiting_approval"}
    own.process.terminate()
    _, said = own.process.communicate(timeout=HANGS_S)
    assert own.process.returncode == 0
    assert [said.count(f"the session {name} cannot be checked") for name in bad] == [1] * len(bad)
