"""Lines of a file, from either end."""

import errno
import gzip
import io
import json
import os
import tempfile
import threading

import pytest
from support.host import HANGS_S

from tailhook._core import forward_lines, last_message, reverse_lines

WINDOW = 65536  # bytes of the reader's first window


@pytest.fixture
def file_of(tmp_path):
    """Return a function that writes bytes to a file and returns it, open for reading and writing."""
    files = []

    def make(data):
        path = tmp_path / f"{len(files)}.jsonl"
        path.write_bytes(data)
        files.append(path.open("r+b", buffering=0))
        return files[-1]

    yield make
    for file in files:
        file.close()


def newest_first(file, **bounds):
    return [line for _, line in reverse_lines(file, **bounds)]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"one", [b"one"]),
        (b"one\n", [b"one"]),
        (b"one\n\n", [b"one", b""]),
        (b"\none", [b"", b"one"]),
        (b"one\r\ntwo\r\n", [b"one", b"two"]),
        (b"one\rtwo\r", [b"one\rtwo"]),
        (b"\r\r\n", [b"\r"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo", [b"one", b"\xef\xbb\xbftwo"]),
        (b"\xef\xbb\xbf", [b""]),
        (b"\xef\xbb", [b"\xef\xbb"]),
        (b"\0\n\0", [b"\0", b"\0"]),
    ],
)
def test_both_directions_give_the_lines(file_of, data, lines):
    file = file_of(data)
    assert [line for _, line in forward_lines(file)] == lines
    assert newest_first(file) == lines[::-1]


@pytest.mark.parametrize(
    ("line", "is_given"),
    [
        (b'{"at":6}', True),
        (b'{"at":5}', False),
        (b' {"n":[{"at":9}],"at" : 5 }', False),
        (b'{"at":9,"at":5}', False),
        (b'{"at":5,"\\u0061t":6}', True),
        (b'{"at":-6}', False),
        (b'{"n":9}', False),
        (b'{"at":"9"}', True),
        (b'{"at":5.5}', True),
        (b'{"at":1e2}', True),
        (b'{"at":1234567890123456789012}', True),
        (b'{"at":null}', True),
        (b"{}", False),
        (b'{"at":5', True),
        (b"[5]", True),
        (b"", True),
    ],
)
def test_a_line_is_skipped_only_if_its_number_is_surely_not_above(file_of, line, is_given):
    file = file_of(line + b'\n{"at":7}\n' + line + b'\n{"at":7}\n')
    assert newest_first(file, above=("at", 5)) == [b'{"at":7}', *[line] * is_given] * 2
    assert newest_first(file, above=("at", 7), containing=b'"at":7}') == []


@pytest.mark.parametrize("size", [2**62, 2**63 - 1, 2**63, 2**64, 10**40])
def test_the_number_that_lines_are_compared_with_may_be_of_any_size(file_of, size):
    numbers = [-(10**50), -size, 5, size, 10**50]
    file = file_of(b"".join(b'{"at":%d}\n' % number for number in numbers))

    def given(bound):
        return [json.loads(line)["at"] for line in newest_first(file, above=("at", bound))]

    assert {number for number in numbers if number > size} <= set(given(size))
    assert 5 not in given(size)
    assert {number for number in numbers if number > -size} <= set(given(-size))


def test_the_name_of_a_number_has_a_limit(file_of):
    with pytest.raises(ValueError, match="too long"):
        reverse_lines(file_of(b"{}"), above=("x" * 65, 5))


@pytest.mark.parametrize(
    "length", [0, 1, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW, 5 * WINDOW + 7, 3_000_000]
)
@pytest.mark.parametrize("around", [0, 1, 63, 64, 65, WINDOW])
def test_lines_are_exact_at_any_length(file_of, length, around):
    lines = [b"a" * around, b"b" * length, b"c" * around]
    file = file_of(b"\n".join(lines))
    expected = [(0, lines[0]), (around + 1, lines[1]), (around + length + 2, lines[2])]
    if not around:
        expected.pop()  # the file ends with the newline of the line before
    assert list(forward_lines(file)) == expected
    assert list(reverse_lines(file)) == expected[::-1]


@pytest.mark.parametrize("end", [None, 0, 1, 4, 5, 8, 9, 99])
@pytest.mark.parametrize("start", [0, 1, 3, 4, 5, 8, 9, 99])
def test_a_range_gives_the_lines_that_begin_in_it(file_of, start, end):
    file = file_of(b"one\ntwo\nend")
    expected = [
        (at, line) for at, line in ((0, b"one"), (4, b"two"), (8, b"end")) if at >= start and (end is None or at < end)
    ]
    assert list(forward_lines(file, start, end)) == expected
    assert list(reverse_lines(file, start, end)) == expected[::-1]


def test_ranges_that_meet_give_every_line_once(file_of):
    data = b"".join(b"x" * (i * 37 % 501) + b"\n" for i in range(2000))
    file = file_of(data)
    whole = list(forward_lines(file))
    for size in (1000, 70_000, 200_000):
        pieces = [forward_lines(file, at, at + size) for at in range(0, len(data), size)]
        assert [line for piece in pieces for line in piece] == whole


@pytest.mark.parametrize("length", [11, WINDOW, 3_000_000])
def test_a_line_over_the_limit_is_passed_over(file_of, length):
    data = b"first\n" + b"x" * length + b"\nlast of 10\n" + b"y" * length
    file = file_of(data)
    assert [line for _, line in forward_lines(file, max_line=10)] == [b"first", b"last of 10"]
    assert newest_first(file, max_line=10) == [b"last of 10", b"first"]


def test_the_position_of_a_descriptor_is_neither_used_nor_moved(file_of):
    file = file_of(b"one\ntwo\n")
    file.seek(5)
    assert newest_first(file.fileno()) == [b"two", b"one"]
    assert file.tell() == 5


@pytest.mark.parametrize(("mode", "buffering"), [("rb", 0), ("rb", -1), ("r+b", 0), ("r+b", -1)])
def test_files_and_descriptors_give_the_same(tmp_path, mode, buffering):
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    with path.open(mode, buffering=buffering) as file:
        assert newest_first(file) == newest_first(file.fileno()) == [b"two", b"one"]


def test_a_file_that_only_looks_like_its_descriptor_is_read_through_itself(tmp_path):
    path = tmp_path / "lines.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"one\n" * 50_000 + b"two\n")
    with gzip.open(path) as file:
        assert newest_first(file)[:2] == [b"two", b"one"]


def test_a_file_in_memory_is_read_with_seek_and_readinto():
    file = io.BytesIO(b"x" * 200_000 + b"\nlast")
    assert newest_first(file) == [b"last", b"x" * 200_000]
    assert [len(line) for _, line in forward_lines(file)] == [200_000, 4]


class Counting(io.BytesIO):
    """Counts the bytes that were read."""

    count = 0

    def readinto(self, buffer):
        done = super().readinto(buffer)
        self.count += done
        return done


def test_the_first_window_is_all_that_the_newest_lines_cost():
    file = Counting(b"x" * 999 + b"\n" + b"short line\n" * 1_000_000)
    lines = reverse_lines(file)
    for _ in range(1000):
        assert next(lines)[1] == b"short line"
    assert file.count == WINDOW


def test_a_window_is_not_read_again_when_it_grows():
    file = Counting(b"x" * 5_000_000)
    assert newest_first(file) == [b"x" * 5_000_000]
    assert file.count < 5_000_000 + 64 * 30


def test_of_ten_gigabytes_only_the_end_is_read(tmp_path):
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as file:
        file.seek(10 << 30)
        file.write(b'\n{"type":"assistant","message":{"content":"found"}}\n')
    with path.open("rb") as file:
        before = read_so_far()
        assert next(reverse_lines(file)) == ((10 << 30) + 1, b'{"type":"assistant","message":{"content":"found"}}')
        assert last_message(file) == ("text", [(b"found", None)])
        assert read_so_far() - before < 4 * WINDOW


def read_so_far():
    """Return how many bytes this process has asked the system for."""
    try:
        with open("/proc/self/io", "rb", buffering=0) as facts:
            return int(facts.read().split()[1])
    except FileNotFoundError:
        pytest.skip("the platform does not count what a process reads")


def test_lines_passed_over_are_not_kept_in_memory(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(b"first\n")
        file.seek(400 << 20)
        file.write(b"\nlast\n")
    with path.open("rb") as file:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert newest_first(file, max_line=1 << 20) == [b"last", b"first"]
        assert [line for _, line in forward_lines(file, max_line=1 << 20)] == [b"first", b"last"]
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10  # KiB


def test_what_is_written_after_the_start_is_not_given_and_harms_nothing(file_of):
    file = file_of(b"a" * 100_000 + b"\nb\n")
    lines = reverse_lines(file)
    assert next(lines)[1] == b"b"
    with open(file.name, "ab") as writer:
        writer.write(b"c\n" * 100_000)
    assert [line for _, line in lines] == [b"a" * 100_000]


@pytest.mark.parametrize("left", [0, 1, 1000, 69_999, 70_000, 70_001, 100_000])
def test_a_file_cut_short_meanwhile_gives_whole_lines_or_an_end(file_of, left):
    lines = [b"%07d" % i for i in range(20_000)]
    file = file_of(b"\n".join(lines) + b"\n")
    reader = reverse_lines(file)
    given = [next(reader)[1] for _ in range(10)]
    file.truncate(left)
    given += [line for _, line in reader]
    assert given == lines[::-1][: len(given)]


@pytest.mark.parametrize("reader", [reverse_lines, forward_lines])
@pytest.mark.parametrize("size", [500, 70_000, 150_000, 400_000])
def test_a_file_that_is_overwritten_meanwhile_ends_the_iteration(file_of, reader, size):
    old = [b"old%07d" % i for i in range(20_000)]
    file = file_of(b"\n".join(old) + b"\n")
    lines = reader(file)
    given = [next(lines)[1] for _ in range(10)]
    file.truncate(0)
    file.seek(0)
    file.write(b"".join(b"the new line %d\n" % i for i in range(size // 17)))
    given += [line for _, line in lines]
    assert set(given) <= set(old)
    assert len(given) < len(old)


def test_a_replaced_file_is_read_to_its_end_as_it_was(file_of, tmp_path):
    old = [b"old %d" % i for i in range(50_000)]
    file = file_of(b"\n".join(old))
    lines = reverse_lines(file)
    given = [next(lines)[1]]
    (tmp_path / "new").write_bytes(b"new\n")
    os.replace(tmp_path / "new", file.name)
    assert given + [line for _, line in lines] == old[::-1]


def test_a_file_that_grows_and_is_replaced_meanwhile_never_gives_pieces(tmp_path):
    """Every line has its name at both ends, so a piece of a line or two joined lines are noticed."""
    path = tmp_path / "growing"
    path.write_bytes(b"")
    stop = threading.Event()

    def write():
        generation = 0
        while not stop.is_set():
            generation += 1
            with open(tmp_path / "new", "wb", buffering=0) as writer:
                for i in range(200):
                    name = b"<%d:%d>" % (generation, i)
                    writer.write(name + b"x" * (i * 7919 % 5000) + name + b"\n")
                    if i == 50:
                        os.replace(writer.name, path)

    def is_whole(line):
        name = line[: line.index(b">") + 1]
        return line.startswith(b"<") and line.endswith(name) and len(line) > len(name)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = 0
        while seen < 50_000:
            with path.open("rb") as file:
                for lines in ([line for _, line in forward_lines(file)], newest_first(file)[::-1]):
                    # The line at the very end may still be being written.
                    assert all(is_whole(line) for line in lines[:-1])
                    seen += len(lines)
    finally:
        stop.set()
        writer.join()


def test_errors_of_the_system_are_raised(tmp_path):
    directory = os.open(tmp_path, os.O_RDONLY)
    read_end, write_end = os.pipe()
    try:
        with pytest.raises(IsADirectoryError):
            reverse_lines(directory)
        with pytest.raises(OSError, match=os.strerror(errno.ESPIPE)):
            reverse_lines(read_end)
    finally:
        for descriptor in (directory, read_end, write_end):
            os.close(descriptor)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        reverse_lines(directory)
    with tempfile.TemporaryFile() as file, pytest.raises(ValueError, match="negative"):
        reverse_lines(file, -1)
    with pytest.raises(ValueError, match="closed"):
        reverse_lines(file)
    with pytest.raises(AttributeError):
        reverse_lines("a path")


def test_an_error_of_a_file_object_comes_through():
    class Failing(io.BytesIO):
        def readinto(self, buffer):
            raise PermissionError("not today")

    with pytest.raises(PermissionError, match="not today"):
        newest_first(Failing(b"one"))


def test_a_buffer_kept_by_a_failing_file_is_released():
    class Failing(io.BytesIO):
        def readinto(self, buffer):
            self.kept = buffer
            raise PermissionError("not today")

    file = Failing(b"one")
    with pytest.raises(PermissionError):
        newest_first(file)
    with pytest.raises(ValueError, match="released"):
        file.kept[0] = 1


@pytest.mark.parametrize("reader", [forward_lines, reverse_lines])
@pytest.mark.parametrize("buffering", [0, -1])
def test_a_closed_file_is_an_error_even_when_its_descriptor_is_another_files(tmp_path, reader, buffering):
    for name in ("ours", "others"):
        (tmp_path / name).write_bytes(name.encode())
    with open(tmp_path / "ours", "rb", buffering=buffering) as file:
        number, lines = file.fileno(), reader(file)
    with open(tmp_path / "others", "rb") as other:
        assert other.fileno() == number
        with pytest.raises(ValueError, match="closed file"):
            list(lines)


def test_a_reader_without_a_file_has_no_lines():
    assert list(type(reverse_lines(io.BytesIO()))()) == []


def test_a_file_object_that_lies_about_itself_is_an_error_and_no_crash():
    class Lying(io.BytesIO):
        def __init__(self, size, count):
            super().__init__(b"x" * 100)
            self.size, self.count = size, count

        def seek(self, offset, whence=0):
            super().seek(offset, whence)
            return self.size if whence else offset

        def readinto(self, buffer):
            self.kept = buffer
            return self.count

    for count in (-1, 1 << 40):
        with pytest.raises(OSError, match="readinto of 100 bytes returned"):
            newest_first(Lying(100, count))
    with pytest.raises(ValueError, match="negative"):
        newest_first(Lying(-1, 0))
    assert newest_first(Lying(1 << 62, 0)) == []
    honest = Lying(10, 10)
    newest_first(honest)
    with pytest.raises(ValueError, match="released"):
        honest.kept[0] = 1


def test_a_reader_in_use_by_one_thread_refuses_another():
    class Slow(io.BytesIO):
        def readinto(self, buffer):
            entered.set()
            assert release.wait(HANGS_S)
            return super().readinto(buffer)

    entered, release = threading.Event(), threading.Event()
    lines = reverse_lines(Slow(b"one\n"))
    given = []
    thread = threading.Thread(target=lambda: given.append(next(lines)))
    thread.start()
    assert entered.wait(HANGS_S)
    with pytest.raises(RuntimeError, match="another thread"):
        next(lines)
    release.set()
    thread.join()
    assert given == [(0, b"one")]


@pytest.mark.parametrize("read", [forward_lines, reverse_lines])
@pytest.mark.parametrize("buffered", [True, False])
def test_a_descriptor_whose_number_becomes_another_files_is_not_read(tmp_path, read, buffered):
    """Another thread may close the file between two reads; the next opened file gets its number."""
    path, other = tmp_path / "lines", tmp_path / "other"
    path.write_bytes(b"".join(b"%06d\n" % number for number in range(200_000)))
    other.write_bytes(b"x" * 10 + b"\n")
    with path.open("rb", buffering=-1 if buffered else 0) as file, other.open("rb") as replacement:
        lines = read(file)
        first = next(lines)
        kept = os.dup(file.fileno())
        os.dup2(replacement.fileno(), file.fileno())
        found = [first, *lines]
        os.dup2(kept, file.fileno())
        os.close(kept)
    assert len(found) == 200_000
    assert all(line != b"x" * 10 for _, line in found)


def test_no_descriptor_is_left_open(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n" * 1000)
    before = len(os.listdir("/dev/fd"))
    with path.open("rb", buffering=0) as file:
        unfinished = reverse_lines(file)
        next(unfinished)
        for _ in range(50):
            assert len(list(forward_lines(file))) == 2000
            last_message(file, max_bytes=10)
            with pytest.raises(ValueError, match="negative"):
                reverse_lines(file, -1)
            with pytest.raises(TypeError):
                reverse_lines(file, max_line="x")
        del unfinished
        assert len(os.listdir("/dev/fd")) == before + 1
    assert len(os.listdir("/dev/fd")) == before
