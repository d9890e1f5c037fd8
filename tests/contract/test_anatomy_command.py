"""`tailhook anatomy` as a person runs it."""

import json
import os
import re
import resource
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.host import ENVIRONMENT, HANGS_S, SANITIZER
from support.host_records import RECORDS
from support.long_runs import IS_LONG

from tailhook.hosts import RECORDED

ROOT = Path(__file__).parents[2]
HOSTILE = "</style></title><script>document.title='owned'</script>\x1b]0;owned\x07\u202e\x00&lt;"


@pytest.fixture(scope="module")
def lines():
    """Return the lines of the made-up session."""
    return list(runpy.run_path(str(ROOT / "examples" / "session.py"))["make_session"]())


@pytest.fixture
def session(project, lines):
    """Return a project with the made-up session as its transcript."""
    project.transcript.write_text("".join(lines), encoding="utf-8")
    return project


def anatomy(session, output, *words):
    return session.tailhook("anatomy", str(session.transcript), "-o", str(output), *words)


def test_a_picture_is_written(session, tmp_path):
    done = anatomy(session, tmp_path / "a.svg")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"Wrote {tmp_path / 'a.svg'}.\n", "")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prompts 3, tool calls 96, compactions 1, signals 1" in text
    assert "prefers-color-scheme:dark" in text
    assert set(re.findall(r"https?://[^\"' <]+", text)) == {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_mode_that_the_umask_allows_and_an_old_one_keeps_its_own(session, tmp_path, mask):
    path = tmp_path / "a.svg"
    previous = os.umask(mask)
    try:
        assert anatomy(session, path).returncode == 0
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask
        path.chmod(0o640)
        assert anatomy(session, path).returncode == 0
        assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(previous)


def test_a_page_has_the_picture_in_three_widths_and_the_figures_as_tables(session, tmp_path):
    assert anatomy(session, tmp_path / "a.html").returncode == 0
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert re.findall(r'<svg [^>]*class="anatomy (\w+)"', text) == ["wide", "middle", "narrow"]
    identifiers = re.findall(r' id="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers)) == 6
    assert re.findall(r"<caption>([^<]+)", text) == [
        *("Kinds of records", "The largest lines", "Tools", "Records that are not messages"),
    ]
    assert "src=" not in text


def test_the_largest_records_can_be_explained(session, tmp_path):
    anatomy(session, tmp_path / "a.html")
    table = (tmp_path / "a.html").read_text().partition("The largest lines")[2]
    offset = re.search(r"tools&#x27; results</th><td>(\d+)", table)[1]
    done = session.tailhook("explain", str(session.transcript), "--offset", offset)
    assert "This message has no text: it has 1 result of tools." in done.stdout


def test_the_picture_in_the_readme_is_what_is_drawn(session, tmp_path):
    session.transcript.rename(tmp_path / "session.jsonl")
    assert session.tailhook("anatomy", str(tmp_path / "session.jsonl"), "-o", str(tmp_path / "a.svg")).returncode == 0
    kept = ROOT / "docs" / "images" / "anatomy.svg"
    assert (tmp_path / "a.svg").read_text() == kept.read_text()


@pytest.mark.parametrize("words", [(), ("-o", "x.png"), ("-o", "x.jsonl"), ("-o", "x")])
def test_wrong_usage_exits_with_2(session, words):
    done = session.tailhook("anatomy", str(session.transcript), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert not (session.folder / "x.png").exists()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty, so there is nothing to draw"),
        (b"\n \n", "it is empty, so there is nothing to draw"),
        (b"\x00\xff\nno JSON\n", "no line of it is a record (2 broken), so there is nothing to draw"),
    ],
)
def test_a_transcript_without_a_record_is_an_error(session, tmp_path, data, reason):
    session.transcript.write_bytes(data)
    done = anatomy(session, tmp_path / "a.svg")
    assert (done.returncode, done.stderr) == (1, f"tailhook: {session.transcript}: {reason}\n")
    assert not (tmp_path / "a.svg").exists()


def test_a_missing_file_is_an_error_and_an_old_picture_stays(session, tmp_path):
    (tmp_path / "a.svg").write_text("before")
    done = session.tailhook("anatomy", str(tmp_path / "missing.jsonl"), "-o", str(tmp_path / "a.svg"))
    assert done.returncode == 1
    assert "missing.jsonl: No such file or directory" in done.stderr
    assert (tmp_path / "a.svg").read_text() == "before"


def test_a_picture_is_written_to_the_end_of_a_link_but_not_over_the_transcript(session, tmp_path):
    (tmp_path / "a.svg").symlink_to("b.svg")
    assert anatomy(session, tmp_path / "a.svg").returncode == 0
    assert (tmp_path / "b.svg").read_text().startswith("<svg")
    before = session.transcript.read_bytes()
    (tmp_path / "c.svg").symlink_to(session.transcript)
    done = anatomy(session, tmp_path / "c.svg")
    assert done.stderr == f"tailhook: {tmp_path / 'c.svg'} is the transcript: give the name of another file\n"
    assert (done.returncode, session.transcript.read_bytes()) == (2, before)


def test_a_folder_that_is_missing_is_named_with_the_picture(session):
    assert anatomy(session, "none/a.svg").stderr == "tailhook: none/a.svg: No such file or directory\n"


def test_broken_lines_are_a_kind_of_their_own(session, tmp_path):
    with session.transcript.open("ab") as file:
        file.write(b'{"torn": \n' * 3)
    assert anatomy(session, tmp_path / "a.html").returncode == 0
    assert '<th scope="row">broken lines</th><td>3</td><td>30 B</td>' in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_everything_that_a_transcript_chooses_is_escaped(session, tmp_path, ending):
    path = tmp_path / "<b>&\u202e.jsonl"
    tool = {"type": "tool_use", "id": HOSTILE, "name": HOSTILE, "input": {}}
    message = {"role": "assistant", "id": HOSTILE, "model": HOSTILE, "content": [tool]}
    records = [
        {"type": HOSTILE, "sessionId": HOSTILE, "timestamp": HOSTILE},
        {"type": "assistant", "timestamp": "9999-12-31T23:59:59Z", "message": message},
        {"type": "assistant", "timestamp": "0001-01-01T00:00:00Z", "message": message},
    ]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    picture = tmp_path / f"a.{ending}"
    done = session.tailhook("anatomy", str(path), "-o", str(picture))
    assert (done.returncode, done.stderr) == (0, "")
    text = picture.read_text(encoding="utf-8")
    assert not re.search(r"<script|[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    if ending == "svg":
        ET.fromstring(text)


@pytest.mark.parametrize("host", RECORDED)
def test_every_hosts_transcript_is_drawn(session, tmp_path, host):
    first, others = RECORDS[host]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in (first, *(one for one, _ in others))))
    done = session.tailhook("anatomy", str(path), "-o", str(tmp_path / "a.svg"))
    assert (done.returncode, done.stderr) == (0, "")
    assert f">{host} · " in (tmp_path / "a.svg").read_text()


@pytest.mark.system
@pytest.mark.skipif(SANITIZER, reason="a sanitizer needs memory of its own")
def test_a_huge_transcript_needs_little_memory_and_gives_a_small_picture(session, tmp_path, lines):
    block = "".join(lines).encode()
    with session.transcript.open("wb") as file:
        for _ in range(600 if IS_LONG else 250):  # 290 MB, 200,000 records; or 120 MB
            file.write(block)
    limit = 100 << 20
    done = subprocess.run(
        [sys.executable, "-m", "tailhook", "anatomy", str(session.transcript), "-o", str(tmp_path / "a.html")],
        env={**ENVIRONMENT, **session.env},
        cwd=session.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.html").stat().st_size < 400_000
