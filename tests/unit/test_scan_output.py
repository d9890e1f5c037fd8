"""The report, the masks and the output of a scan."""

import csv
import errno
import io
import json
import os
import struct
from contextlib import ExitStack
from datetime import UTC, datetime

import orjson
import pytest
from support.cases import in_one_test
from support.library_sample import write_sample
from support.oracles.scan import Question, rows

import tailhook
from tailhook._core import make_batch
from tailhook.cli.scan import hiding
from tailhook.fleet.output import ACL, whole_file, write_csv, write_jsonl
from tailhook.fleet.redact import MASKED, mask_context, mask_json
from tailhook.fleet.report import Progress
from tailhook.fleet.typed_rows import ROWS

# ---- the report and the progress -----------------------------------------------


@pytest.fixture
def folder(tmp_path):
    write_sample(tmp_path)
    return tmp_path


@pytest.mark.parametrize("table", ["records", "tools", "usage", "sessions"])
def test_a_report_counts_each_file_once(folder, table):
    scan = tailhook.scan(folder, table)
    assert scan.report.seconds is None
    assert scan.report[:5] == (0, 0, 0, 0, 0)
    list(scan)
    assert (scan.report.files, scan.report.bytes) == (3, sum(path.stat().st_size for path in folder.rglob("*.jsonl")))
    assert scan.report.seconds >= 0
    assert scan.report.skipped == ()
    list(scan)
    assert scan.report.files == 3  # the newest iteration counts


def test_a_report_counts_records_and_broken_lines(folder):
    (folder / "torn.jsonl").write_bytes(b'{"type":"user"}\n{"type":\n\n[]\n')
    scan = tailhook.scan(folder, "records")
    found = sum(len(batch) for batch in scan)
    assert (scan.report.records, scan.report.broken_lines) == (found, 2)


def test_progress_goes_from_nothing_to_all(folder):
    seen = []
    whole = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
    list(tailhook.scan(folder, "records", progress=seen.append))
    assert seen == [Progress(0, 0, 3, whole), Progress(3, whole, 3, whole)]
    seen.clear()
    list(tailhook.scan(folder, "sessions", progress=seen.append))
    assert seen[0] == Progress(0, 0, 3, whole)
    assert Progress(1, whole // 2, 3, whole) in seen
    assert seen[-1] == Progress(3, whole, 3, whole)


def test_an_exception_of_the_callback_ends_the_scan(folder):
    def stop(progress):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        list(tailhook.scan(folder, "records", progress=stop))


def test_the_progress_bar_is_hidden_before_rows_and_when_all_are_read():
    seen = []

    class View:
        has_rows = False

        def hide(self):
            seen.append("hidden")

    def batches():
        for number in range(2):
            seen.append("drawn")
            yield [number]
        seen.append("drawn")

    assert list(hiding(batches(), View())) == [[0], [1]]
    assert seen == ["drawn", "hidden"] * 3


# ---- secrets -------------------------------------------------------------------

KEY = "ghp_0123456789abcdefghij"


@pytest.mark.parametrize(
    ("words", "context", "masked"),
    [
        ("set password: hunter2 TODO now", 100, "set password: [secret] TODO now"),
        ("set password: hunter2 TODO now", 8, "[secret] TODO now"),  # its name is before the context
        ("set password: hunter2 TODO now", 5, "TODO now"),  # a cut word is left out
        (f"TODO {KEY}", 10, "TODO"),
        (f"{KEY}TODO", 3, "[secret]"),
        ("one TODO two three", 7, "one TODO two"),
        ("TODO", 0, "TODO"),
        ("a\tTODO\nb", 2, "a\tTODO\nb"),
        ("a TODO b\x1ec", 20, "a TODO b c"),
    ],
)
def test_a_context_has_no_secret_even_if_its_edge_cuts_one(words, context, masked):
    assert mask_context(words, words.index("TODO"), 4, context) == masked


def test_a_context_is_examined_from_before_its_beginning(tmp_path):
    far = "x " * 3000
    words = f"{far}password: hunter2 TODO {far}"
    (tmp_path / "s.jsonl").write_text('{"type":"user","message":{"role":"user","content":"' + words + '"}}')
    (row,) = tailhook.scan(tmp_path, patterns=["TODO"], context=8, redact=True).rows()
    assert row.context == "[secret] TODO x x x x"
    assert words[row.start : row.end] == "TODO"
    (row,) = tailhook.scan(tmp_path, patterns=["TODO"], context=8, redact=True, columns=["context"]).rows()
    assert row._fields == ("context",)


@in_one_test(
    ("text", "masked"),
    [
        (
            '{"apiKey":"abc","n":1,"l":[{"password":["x y"]},"run --token abc",null,true]}',
            '{"apiKey":"[secret]","n":1,"l":[{"password":["[secret]"]},"run --token [secret]",null,true]}',
        ),
        ('{"password": 12345678, "max_tokens": 9}', '{"password": "[secret]", "max_tokens": 9}'),
        ('{"password": [-1.5e3, true, null, ""]}', '{"password": ["[secret]", true, null, ""]}'),
        (f'{{"{KEY}" : "x", "b": 1}}', '{"[secret]" : "x", "b": 1}'),
        (
            '{"token": {"value": "x y", "n": [7]}, "n": 7}',
            '{"token": {"value": "[secret]", "n": ["[secret]"]}, "n": 7}',
        ),
        ('{"Authorization": "Basic abc", "Cookie": "a=b"}', '{"Authorization": "[secret]", "Cookie": "[secret]"}'),
        ('{"command": ["curl", "-u", "me:abc", "a.org"]}', '{"command": ["curl", "-u", "me:[secret]", "a.org"]}'),
        (
            '["--token", "abc", ["def"], "--token", {"a": "b"}]',
            '["--token", "[secret]", ["def"], "--token", {"a": "b"}]',
        ),
        ('["--token", "\\u001eabc def"]', '["--token", " [secret] def"]'),
        ('"deploy --token abc"', '"deploy --token [secret]"'),
        ('{"p\\u0061ssword": "a\\"b", "c": "\\ud800\\u00e9"}', '{"p\\u0061ssword": "[secret]", "c": "\\ud800\\u00e9"}'),
        ('{"c": "\\ud800 --token abc", "d": "\\ud800"}', '{"c": "\ufffd --token [secret]", "d": "\\ud800"}'),
        ('{"args": ["deploy", "--token", 123456, 7, true]}', '{"args": ["deploy", "--token", "[secret]", 7, true]}'),
        ('["--password", null, "hunter2"]', '["--password", null, "[secret]"]'),
        ('{"cookies": {"sid": "abcdef"}}', '{"cookies": {"sid": "[secret]"}}'),
        (
            '[{"name": "API_TOKEN", "value": "abc"}, {"name": "b", "value": "c"}, {"value": "d"}]',
            '[{"name": "API_TOKEN", "value": "[secret]"}, {"name": "b", "value": "c"}, {"value": "d"}]',
        ),
        ('{"key": "token", "a": {"value": 1}, "value": 2}', '{"key": "token", "a": {"value": 1}, "value": "[secret]"}'),
        ('{"command": "mysql", "args": ["-phunter2", "x"]}', '{"command": "mysql", "args": ["-p[secret]", "x"]}'),
        ('{"command": "ls", "args": ["-phunter2"]}', '{"command": "ls", "args": ["-phunter2"]}'),
        ('{"password": "hunter2"', '{"password": "[secret]"'),
        ('{"password": "hunter2', '{"password": [secret]'),
        ('{"password": hunter2}', '{"password": [secret]'),
        ("] password: hunter2", "] password: [secret]"),
        ("", ""),
    ],
)
def test_json_is_masked_by_its_names_and_texts(text, masked):
    assert mask_json(text) == masked


def test_a_number_of_any_length_is_masked():
    assert mask_json(f'{{"password": {"9" * 5000}}}') == '{"password": "[secret]"}'


def test_json_of_any_depth_is_masked(tmp_path):
    deep = '{"password":' + "[" * 900 + '"hunter two",7' + "]" * 900 + "}"
    use = '{"type":"tool_use","id":"t","name":"Bash","input":' + deep + "}"
    record = '{"type":"assistant","message":{"role":"assistant","content":[' + use + "]}}\n"
    (tmp_path / "s.jsonl").write_text(record)
    (row,) = tailhook.scan(tmp_path, "tools", columns=["input"], redact=True).rows()
    assert row.input == deep.replace('"hunter two",7', '"[secret]","[secret]"')


WITHOUT_WORDS = {"file", "message_id", "parent", "parent_uuid", "request_id", "tool_use_id", "uuid"}


def test_every_column_of_a_text_is_masked_or_has_no_words_of_a_session():
    types = {name: kind for row in ROWS.values() for name, kind in row.__annotations__.items()}
    assert {name for name, kind in types.items() if kind in ("str", "str | None")} == MASKED | WITHOUT_WORDS


def test_without_secrets_redacted_rows_are_the_rows(folder):
    for table, columns in (("records", ["offset", "text"]), ("tools", ["name", "command", "input"])):
        plain = [tuple(row) for row in tailhook.scan(folder, table, columns=columns).rows()]
        masked = [tuple(row) for row in tailhook.scan(folder, table, columns=columns, redact=True).rows()]
        assert masked == plain
    files = [(str(path), path.read_bytes()) for path in sorted(folder.rglob("*.jsonl"))]
    wanted = rows("matches", files, Question(patterns={"it": "it"}, sidechains=True))
    found = [row._asdict() for row in tailhook.scan(folder, patterns=["it"], sidechains=True, redact=True).rows()]
    assert found == wanted


# ---- JSON lines and CSV --------------------------------------------------------

ODD = ['},{"uuid":', "a,b", '"', "line\r\nline", "", "\u2028 ü \U0001f600", None, "},{", "\\"]


@pytest.mark.parametrize("names", [("uuid", "tools", "is_meta", "offset"), ("tools", "uuid", "is_meta", "offset")])
def test_values_of_any_kind_are_written_so_that_they_can_be_read(names):
    odd = [
        {"uuid": one, "tools": ODD[:6] * (number % 2), "is_meta": [None, True, False][number % 3], "offset": number}
        for number, one in enumerate(ODD * 120)
    ]
    odd[3]["tools"] = None
    batch = make_batch("records", names, [tuple(row[name] for name in names) for row in odd])
    file = io.BytesIO()
    write_jsonl([batch, batch.head(0), batch.head(1)], names, file)
    lines = file.getvalue().decode().split("\n")
    assert [json.loads(line) for line in lines[:-1]] == [*odd, odd[0]]
    assert lines[-1] == ""
    file = io.BytesIO()
    write_csv([batch, batch.head(0), batch.head(1)], names, file)
    cells = [
        [
            "" if row[name] is None else orjson.dumps(row[name]).decode() if name == "tools" else str(row[name])
            for name in names
        ]
        for row in [*odd, odd[0]]
    ]
    assert list(csv.reader(io.StringIO(file.getvalue().decode(), newline=""))) == [list(names), *cells]


def test_a_file_that_cannot_be_replaced_is_named_and_its_part_is_removed(tmp_path):
    path = tmp_path / "out.jsonl"
    with pytest.raises(IsADirectoryError) as raised, whole_file(path):
        path.mkdir()
    assert (raised.value.filename, raised.value.filename2) == (str(path), None)
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_if_a_signal_comes_while_a_part_is_made(tmp_path, monkeypatch):
    usual = os.open

    def interrupted(path, *words):
        os.close(usual(path, *words))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "out.jsonl"):
        pytest.fail("the block went on")
    assert list(tmp_path.iterdir()) == []


def test_two_outputs_of_one_process_have_a_part_each(tmp_path):
    names = ["a.jsonl", "b.jsonl", "x" * 255, "x" * 254 + "y"]
    with ExitStack() as open_files:
        for name in names:
            open_files.enter_context(whole_file(tmp_path / name)).write(name.encode())
        assert all(path.name.startswith(".") for path in tmp_path.iterdir())
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: name for name in names}


def test_another_process_with_the_same_id_has_a_part_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as the first process of each container
    with whole_file(tmp_path / "out.jsonl") as file:
        with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "out.jsonl"):
            _ = 1 / 0
        file.write(b"rows")
    assert (tmp_path / "out.jsonl").read_bytes() == b"rows"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_group_or_has_no_permissions_for_one(tmp_path, monkeypatch, mode):
    path = tmp_path / "rows.csv"
    path.touch()
    if os.geteuid() != 0:
        pytest.skip("only root gives a file to a group of others")
    os.chown(path, 1000, 1000)
    path.chmod(0o6000 | mode)
    with whole_file(path):
        pass
    assert (path.stat().st_mode & 0o7777, path.stat().st_gid) == (mode, 1000)

    def refuse(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fchown", refuse)
    os.chown(path, 1000, 1000)
    with whole_file(path):
        pass
    assert path.stat().st_mode & 0o7777 == mode & 0o707
    assert path.stat().st_gid != 1000


def test_an_access_control_list_gives_its_group_no_more_than_before(tmp_path):
    """user::rw-, user:1234:rw-, group::---, mask::rw-, other::---: the mode's group bits are those of the mask."""
    path = tmp_path / "rows.csv"
    path.touch(0o600)
    no_id = 0xFFFFFFFF
    entries = [(0x01, 6, no_id), (0x02, 6, 1234), (0x04, 0, no_id), (0x10, 6, no_id), (0x20, 0, no_id)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, ACL, acl)
    except (AttributeError, OSError) as error:
        pytest.skip(f"no access control lists here: {error}")
    assert path.stat().st_mode & 0o777 == 0o660
    with whole_file(path):
        pass
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode_from_the_first_byte_on(tmp_path, mode):
    path = tmp_path / "out.jsonl"
    path.touch(mode)
    path.chmod(mode)
    with whole_file(path) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == mode
    assert path.stat().st_mode & 0o777 == mode


def test_a_null_in_the_only_column_of_csv_is_not_an_empty_line():
    file = io.BytesIO()
    write_csv([make_batch("records", ("uuid",), [("a",), (None,)])], ("uuid",), file)
    assert file.getvalue() == b'uuid\na\n""\n'


def test_a_time_has_its_microseconds():
    times = [datetime(2026, 11, 22, 9, 0, 0, microsecond, UTC) for microsecond in (123456, 0)]
    batch = make_batch("records", ("timestamp",), [(time,) for time in times])
    written = ["2026-11-22T09:00:00.123456Z", "2026-11-22T09:00:00.000000Z"]
    for write in (write_jsonl, write_csv):
        write([batch], ("timestamp",), file := io.BytesIO())
        assert [time for time in written if time in file.getvalue().decode()] == written
