"""Sources of a transcript: paths, URLs and binary files, compressed or not."""

import bz2
import gc
import gzip
import io
import json
import lzma
import os
import signal
import socket
import sys
import time
import weakref
from random import Random
from threading import Event, Thread, get_ident

import pytest
from support.host import HANGS_S
from support.range_server import served

from tailhook import scan
from tailhook.errors import MissingExtraError, SourceError, TailhookError
from tailhook.transcripts import transcript, urls

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LINES = [json.dumps({"type": "user", "n": n, "message": {"content": "é" * n}}).encode() + b"\n" for n in range(300)]
DATA = b"".join(LINES)
SKIPPABLE = b"\x5a\x2a\x4d\x18\x04\x00\x00\x00skip"


def numbers(source):
    with transcript.open(source) as session:
        forward = [record.json()["n"] for record in session]
        assert [record.json()["n"] for record in session.reversed()] == forward[::-1]
        return forward


WAYS = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "gzip of two members": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    "gzip with zeros after it": lambda data: gzip.compress(data) + bytes(512),
    "zstd": zstd.compress,
    "zstd of three frames": lambda data: b"".join(map(zstd.compress, (data[:7], data[7:5000], data[5000:]))),
    "zstd after a skippable frame": lambda data: SKIPPABLE + zstd.compress(data),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["session.jsonl", "session.jsonl.gz", "session.jsonl.zst", "session"])
def test_the_first_bytes_and_not_the_name_decide_how_a_file_is_decompressed(tmp_path, way, name):
    path = tmp_path / name
    path.write_bytes(WAYS[way](DATA))
    assert numbers(path) == list(range(300))
    assert numbers(str(path)) == list(range(300))
    with path.open("rb") as file:
        assert numbers(file) == list(range(300))
        assert not file.closed
    assert numbers(io.BytesIO(path.read_bytes())) == list(range(300))


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_file_has_no_records(tmp_path, way):
    path = tmp_path / "empty"
    path.write_bytes(WAYS[way](b""))
    with transcript.open(path) as session:
        assert (list(session), session.last_message(), session.host) == ([], None, "claude-code")


def test_offsets_are_those_of_the_decompressed_bytes(tmp_path):
    path = tmp_path / "session.jsonl.gz"
    path.write_bytes(gzip.compress(DATA))
    with transcript.open(path) as session:
        for record in session:
            assert session.at(record.offset).json() == json.loads(DATA[record.offset :].split(b"\n")[0])


@pytest.mark.parametrize("way", [way for way in WAYS if way != "plain"])
def test_a_compressed_file_that_is_cut_off_is_an_error_and_not_a_shorter_transcript(tmp_path, way):
    whole = WAYS[way](DATA)
    path = tmp_path / "session.jsonl.gz"
    for size in (12, 40, len(gzip.compress(DATA[:1000])) + 30, len(whole.rstrip(b"\0")) - 1):
        path.write_bytes(whole[:size])
        if whole[:size].startswith(SKIPPABLE) and size == len(SKIPPABLE):
            continue
        with pytest.raises(SourceError, match=f"{path.name} is cut off"):
            transcript.open(path)


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress])
def test_damaged_compressed_bytes_are_an_error_with_the_files_name(tmp_path, compress):
    damaged = bytearray(compress(Random(1).randbytes(200_000)))
    damaged[5000:5100] = bytes(100)
    path = tmp_path / "session.jsonl.gz"
    path.write_bytes(damaged[:4] + b"\xff" * 40 + damaged[44:])
    with pytest.raises(SourceError, match=path.name) as raised:
        transcript.open(path)
    assert isinstance(raised.value, TailhookError)
    assert isinstance(raised.value, OSError)


def test_zstd_without_its_library_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "session.jsonl.zst"
    path.write_bytes(zstd.compress(DATA))
    for module in ("compression", "compression.zstd", "backports.zstd", "backports"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"session.jsonl.zst.*pip install 'tailhook\[zstd\]'") as raised:
        transcript.open(path)
    assert isinstance(raised.value, ImportError)


def test_a_full_disk_is_the_disks_error_and_leaves_nothing(tmp_path, monkeypatch):
    class FullFile(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    full = FullFile()
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **options: full)
    path = tmp_path / "session.jsonl.gz"
    path.write_bytes(gzip.compress(DATA))
    with pytest.raises(OSError, match="No space left"):
        transcript.open(path)
    assert full.closed


def test_a_pipe_is_refused_at_once_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(SourceError, match="not a regular file"):
        transcript.open(tmp_path / "pipe.jsonl")


def test_a_device_a_socket_and_a_folder_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match="not a regular file"):
        transcript.open("/dev/null")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with pytest.raises(OSError, match="socket"):
            transcript.open("socket")
    with pytest.raises(IsADirectoryError):
        transcript.open(tmp_path)


def test_a_link_is_followed_and_a_broken_one_is_a_missing_file(tmp_path):
    (tmp_path / "real.jsonl").write_bytes(DATA)
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    (tmp_path / "broken.jsonl").symlink_to("missing.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    assert numbers(tmp_path / "link.jsonl") == list(range(300))
    with pytest.raises(FileNotFoundError):
        transcript.open(tmp_path / "broken.jsonl")
    with pytest.raises(OSError, match=r"loop\.jsonl"):
        transcript.open(tmp_path / "loop.jsonl")


def test_a_binary_file_without_records_is_read_and_has_none(tmp_path):
    path = tmp_path / "binary"
    path.write_bytes(Random(2).randbytes(1 << 20).replace(b"{", b"|"))
    with transcript.open(path) as session:
        assert (list(session), list(session.messages()), session.last_message()) == ([], [], None)


class Unseekable(io.BytesIO):
    def seekable(self):
        return False


@pytest.mark.parametrize(
    "source", [None, b"session.jsonl", 5, [], io.StringIO("{}"), object(), Unseekable(DATA)], ids=lambda one: type(one)
)
def test_anything_else_is_a_type_error_at_once(source):
    with pytest.raises(TypeError, match="not "):
        transcript.open(source)


def test_a_pipe_of_the_callers_is_a_type_error():
    reader, writer = os.pipe()
    os.close(writer)
    with open(reader, "rb") as file, pytest.raises(TypeError, match="seekable binary file"):
        transcript.open(file)


# ---- URLs --------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_an_error_and_is_reported_by_a_scan(tmp_path, codec, pack):
    path = tmp_path / "s.jsonl"
    path.write_bytes(pack("\ufeff".encode(codec) + DATA.decode().encode(codec)))
    with pytest.raises(SourceError, match=r"s\.jsonl is UTF-16, and transcripts are UTF-8: convert it"):
        transcript.open(path)
    asked = scan(path, patterns=["a"])
    assert list(asked.rows()) == []
    assert [tuple(one) for one in asked.report.skipped] == [
        (str(path), "it is UTF-16, and transcripts are UTF-8: convert it")
    ]


@pytest.mark.parametrize(
    ("program", "packed"),
    [
        ("bzip2", bz2.compress(DATA)),
        ("xz", lzma.compress(DATA)),
        ("lz4", b"\x04\x22\x4d\x18\x64\x40\xa7"),
        ("zip", b"PK\x03\x04\x14\x00"),
    ],
    ids=["bzip2", "xz", "lz4", "zip"],
)
def test_another_compression_is_an_error_and_is_reported_by_a_scan(tmp_path, program, packed):
    path = tmp_path / "s.jsonl.packed"
    path.write_bytes(packed)
    reason = f"is compressed with {program}, and only gzip and zstd are read: decompress it"
    with pytest.raises(SourceError, match=rf"s\.jsonl\.packed {reason}"):
        transcript.open(path)
    asked = scan(path, "usage")
    assert list(asked.rows()) == []
    assert [tuple(one) for one in asked.report.skipped] == [(str(path), f"it {reason}")]


def test_the_variables_of_obstore_hold_with_an_endpoint_without_tls(monkeypatch):
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("AWS_USER_AGENT", "my-agent")
        monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")

        def hear():
            with server.accept()[0] as connection:
                heard.append(connection.recv(4096))
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        server.settimeout(30)
        listener = Thread(target=hear)
        listener.start()
        with pytest.raises(FileNotFoundError):
            transcript.open("s3://bucket/a.jsonl")
        listener.join()
        assert b"user-agent: my-agent" in heard[0].lower()
        assert "AWS_ALLOW_HTTP" not in os.environ


def test_an_endpoint_without_tls_may_be_forbidden(monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "false")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    with served({"/bucket/a.jsonl": DATA}) as (address, asked):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        with pytest.raises(SourceError):
            transcript.open("s3://bucket/a.jsonl")
        assert asked == []


def test_a_wait_for_a_store_sees_a_signal_that_another_thread_got():
    answered = Event()

    def hold():
        time.sleep(0.3)
        signal.pthread_kill(get_ident(), signal.SIGUSR1)  # to this thread, so the main one is not woken
        answered.wait(HANGS_S)

    def end(*_):
        raise InterruptedError("seen")

    before = signal.signal(signal.SIGUSR1, end)
    try:
        with pytest.raises(InterruptedError, match="seen"):
            urls.call_interruptibly(hold)
        assert not answered.is_set()
    finally:
        answered.set()
        signal.signal(signal.SIGUSR1, before)


def test_an_exception_of_a_store_ends_with_its_handler():
    class StoreError(Exception):
        pass

    def fail():
        raise StoreError

    gc.disable()
    try:
        try:
            urls.call_interruptibly(fail)
        except StoreError as error:
            alive = weakref.ref(error)
        assert alive() is None
    finally:
        gc.enable()


def test_a_store_is_asked_if_no_thread_can_be_started(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr("threading.Thread.start", refuse)
    assert urls.call_interruptibly(abs, -1) == 1


@pytest.mark.parametrize(
    ("address", "variable"),
    [
        ("computeMetadata/v1/instance/service-accounts/default/token", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("metadata/identity/oauth2/token?api-version=2019-08-01", "AZURE_STORAGE_ACCOUNT_KEY"),
        ("latest/meta-data/iam/security-credentials/", urls.AWS_VARIABLES),
    ],
)
def test_the_variables_to_set_are_those_of_the_store(address, variable):
    words = f"Error performing GET http://169.254.169.254/{address} in 1.6ms - HTTP error: error sending request"
    assert urls.store_reason(OSError(words)) == f"no credentials are in the environment: set {variable} ({words})"


def test_a_reason_of_a_store_is_one_short_line_without_control_characters():
    answer = f"400: <Code>A\x1b[31m\r&#10;b</Code><Message>{'x' * 9999}</Message>"
    assert urls.store_reason(OSError(answer))[:20] == "400: A[31m b: xxxxxx"
    assert len(urls.store_reason(OSError(answer))) == 500


@pytest.mark.parametrize("way", WAYS)
def test_a_url_is_read_in_ranges(way):
    with served({"/folder/session.jsonl": WAYS[way](DATA)}) as (address, asked):
        assert numbers(f"{address}/folder/session.jsonl") == list(range(300))
        assert asked


@pytest.mark.parametrize("with_head", [True, False])
def test_the_query_of_a_url_is_sent_and_its_fragment_is_not(with_head):
    with served({"/folder/a b.jsonl?signed=1/2&x=é?#": DATA}, with_head=with_head) as (address, _):
        assert numbers(f"{address}/folder/a%20b.jsonl?signed=1%2F2&x=%C3%A9?%23#top/b") == list(range(300))
        with pytest.raises(FileNotFoundError, match="nothing at"):
            transcript.open(f"{address}/folder/a%20b.jsonl?signed=2")


def test_a_large_file_at_a_url_is_fetched_in_blocks_and_its_end_alone_for_its_last_message():
    said = {"type": "assistant", "message": {"content": "Done."}}
    data = DATA * 60 + json.dumps(said).encode() + b"\n"
    assert len(data) > 5 << 20
    with served({"/session.jsonl": data}) as (address, asked):
        with transcript.open(f"{address}/session.jsonl") as session:
            assert session.last_message() == "Done."
            assert len(asked) <= 4
            assert sum(1 for record in session) == 60 * 300 + 1
            assert [record.text for record in session.reversed(limit=1)] == ["Done."]
        assert all(end - start <= 1 << 20 for start, end in asked)


def test_an_object_of_s3_is_read_from_the_endpoint_that_the_environment_names(monkeypatch):
    with served({"/bucket/a/session.jsonl": DATA}) as (address, _):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)  # without TLS, which obstore alone would refuse
        monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        assert numbers("s3://bucket/a/session.jsonl") == list(range(300))
        with pytest.raises(FileNotFoundError, match=r"s3://bucket/a/none\.jsonl"):
            transcript.open("s3://bucket/a/none.jsonl")


def test_what_is_not_at_its_url_is_file_not_found():
    with served({}) as (address, _), pytest.raises(FileNotFoundError, match="nothing at"):
        transcript.open(f"{address}/none.jsonl")


def test_a_server_without_ranges_is_an_error_and_not_wrong_bytes():
    with served({"/session.jsonl": DATA}, with_ranges=False) as (address, _), pytest.raises(SourceError):
        numbers(f"{address}/session.jsonl")


def test_an_answer_with_fewer_bytes_than_were_asked_for_is_an_error_and_not_a_shorter_transcript():
    message = "/session.jsonl gave fewer bytes than asked for"
    with served({"/session.jsonl": DATA}, missing_bytes=9) as (address, _), pytest.raises(SourceError, match=message):
        numbers(f"{address}/session.jsonl")


@pytest.mark.parametrize("url", ["foo://x/y", "s3:///", "http://", "http://127.0.0.1:9/session.jsonl"])
def test_the_error_names_the_url_that_cannot_be_opened(url, monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    with pytest.raises(SourceError, match=url):
        transcript.open(url)


def test_a_file_whose_name_looks_like_a_url_is_a_file(tmp_path, monkeypatch):
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    (tmp_path / "s3:" / "bucket" / "session.jsonl").write_bytes(DATA)
    monkeypatch.chdir(tmp_path)
    assert numbers("s3://bucket/session.jsonl") == list(range(300))


def test_a_url_without_its_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    pip = r"\S+/python\S* -m pip install 'tailhook\[s3\]'"
    with pytest.raises(MissingExtraError, match=rf"s3://bucket/x.jsonl is a URL: {pip}"):
        transcript.open("s3://bucket/x.jsonl")
