"""The batches of a scan of ranges: other threads take finished ones while it goes on."""

import contextlib
import resource
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from itertools import chain
from pathlib import Path

import pytest
from support.daemon import wait_until
from support.host import HANGS_S, SANITIZER
from support.ranges import LARGE, RECORDS, begun, ended, filled, in_thread, record

from tailhook._core import RangeScan, ScanProgram, scan_range

UNTRACED = pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer runs Python code while a signal is handled")


def test_finished_batches_are_taken_in_their_order_and_the_rest_is_given_at_the_end():
    scan = begun()
    scan.feed(LARGE)
    first = scan.take()
    scan.end_file()
    rest = scan.finish()
    assert [len(batch) for batch in (first, *rest)] == [65_536] * 3 + [200_000 - 3 * 65_536]
    offsets = [offset for batch in (first, *rest) for offset in batch.columns()[0]]
    assert offsets == list(range(0, len(LARGE), len(record()) + 1))
    assert scan.take() is None


def test_session_lines_come_in_small_batches():
    """Python reads them whole, so that they take memory there."""
    scan = RangeScan(ScanProgram(table="sessions", columns=["offset"]))
    scan.begin("t.jsonl", "s", "claude-code")
    scan.feed((record() + b"\n") * 10_000)
    assert [len(batch) for batch in scan.finish()] == [4096, 4096, 10_000 - 2 * 4096]


@pytest.mark.parametrize("room", [1, 2])
def test_a_scan_waits_while_too_many_batches_are_not_taken(file, room):
    fd = filled(file, LARGE)
    scan = RangeScan(RECORDS, room)
    thread = in_thread(partial(scan_range, fd, 0, None, RECORDS, into=scan))
    time.sleep(0.3)
    assert thread.is_alive()
    taken = [len(scan.take()) for _ in range(3 - room)]
    assert ended(thread)
    assert [*taken, *map(len, scan.finish())] == [65_536] * 3 + [200_000 - 3 * 65_536]


def test_what_waits_for_a_batch_gets_it_when_it_is_finished_and_none_at_the_end():
    scan, taken = begun(), []
    thread = in_thread(lambda: taken.extend(map(len, iter(scan.take, None))))
    scan.feed(LARGE[: len(LARGE) // 2])
    wait_until(lambda: taken == [65_536])
    scan.end_file()
    assert [len(batch) for batch in scan.finish()] == [100_000 - 65_536]
    assert ended(thread)


def test_threads_that_take_from_one_scan_get_each_batch_once(file):
    fd = filled(file, LARGE * 5)
    scan, taken = RangeScan(RECORDS, 1), []
    takers = [in_thread(lambda: taken.extend(batch.columns()[0] for batch in iter(scan.take, None))) for _ in range(4)]
    assert scan_range(fd, 0, None, RECORDS, into=scan) == []
    taken.extend(batch.columns()[0] for batch in scan.finish())
    assert all(map(ended, takers))
    assert sorted(chain.from_iterable(taken)) == list(range(0, 5 * len(LARGE), len(record()) + 1))


def test_a_scan_that_waits_for_room_goes_on_when_it_is_stopped(file):
    fd = filled(file, LARGE * 5)
    scan = RangeScan(RECORDS, 1)
    thread = in_thread(partial(scan_range, fd, 0, None, RECORDS, into=scan))
    time.sleep(0.2)
    assert thread.is_alive()
    scan.stop()
    assert ended(thread)
    assert scan.is_stopped
    assert scan.take() is None
    assert scan.counts["records"] < 500_000


@pytest.fixture
def long_turns():
    """Let each thread keep the GIL until it waits. What it does before a wait is seen only once it waits."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # seconds
    yield
    sys.setswitchinterval(interval)


def waiting_in(function):
    """Start a thread, and return it once it waits in `function`. Needs `long_turns`."""
    begins = []
    thread = in_thread(lambda: (begins.append(True), function()))
    while not begins:
        time.sleep(0)
    return thread


@pytest.mark.usefixtures("long_turns")
def test_what_waits_for_a_batch_goes_on_when_the_scan_is_stopped():
    scan = begun()
    threads = [waiting_in(scan.take) for _ in range(3)]
    assert [thread.is_alive() for thread in threads] == [True] * 3
    scan.stop()
    assert all(map(ended, threads))


@pytest.fixture
def interrupted():
    """Let SIGUSR1 raise InterruptedError, as Ctrl-C raises KeyboardInterrupt."""

    def interrupt(*_):
        raise InterruptedError("by the handler")

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("long_turns")
def test_a_signal_ends_the_wait_for_a_batch(interrupted):
    main, waits = threading.get_ident(), []

    def interrupt():
        while not waits:
            time.sleep(0)
        signal.pthread_kill(main, signal.SIGUSR1)

    def take():
        waits.append(True)
        begun().take()

    thread = in_thread(interrupt)
    with pytest.raises(InterruptedError, match="by the handler"):
        take()
    assert ended(thread)


@UNTRACED
@pytest.mark.usefixtures("long_turns")
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_batch_is_freed_if_a_signal_comes_while_it_is_taken(interrupted, file):
    """Another thread keeps the GIL while this one has its batch and comes back from `take`, and sends the signal."""
    fd = filled(file, (record("y" * 4000) + b"\n") * 1200)  # a batch of 4 MiB, and the rest
    program, main = ScanProgram(table="records", columns=["text"]), threading.get_ident()

    def interrupt(scan, begins):
        while not begins:
            time.sleep(0)
        end = time.monotonic() + 0.02
        while not scan.is_done or time.monotonic() < end:
            pass
        signal.pthread_kill(main, signal.SIGUSR1)

    def run(scan, waits, begins):
        while not waits:
            time.sleep(0)
        begins.append(True)
        scan_range(fd, 0, None, program, into=scan)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    for number in range(22):
        if number == 2:
            before = resident()
        scan, waits, begins = RangeScan(program), [], []
        threads = [in_thread(interrupt, scan, begins), in_thread(run, scan, waits, begins)]
        with contextlib.suppress(InterruptedError):
            waits.append(True)
            scan.take()
            all(map(ended, threads))
        assert all(map(ended, threads))
    if not SANITIZER:  # it keeps memory that was freed
        assert resident() - before < 20 << 20


@pytest.mark.usefixtures("long_turns")
def test_what_waits_for_a_batch_goes_on_at_an_end_although_the_next_range_begins():
    in_time = 0
    for _ in range(1000):
        scan, taken = RangeScan(RECORDS), []
        thread = waiting_in(lambda scan=scan, taken=taken: taken.append(scan.take()))
        time.sleep(0.002)  # it has the scan's lock only after it gave up the GIL
        scan.finish()
        scan.begin("t.jsonl", "s", "claude-code")
        thread.join(0.1)
        if thread.is_alive():  # it began to wait after the end
            scan.finish()
        else:
            in_time += 1
        assert ended(thread)
        assert taken == [None]
        if in_time == 25:
            break
    assert in_time == 25


@UNTRACED
@pytest.mark.usefixtures("long_turns")
def test_what_waits_for_a_batch_goes_on_when_the_scan_fails():
    limit = pytest.importorskip("_testcapi", reason="CPython's own tests are not installed")
    scan, error = begun(), None
    thread = waiting_in(scan.take)
    limit.set_nomemory(0)
    try:
        scan.feed(LARGE)
    except MemoryError as raised:
        error = raised
    finally:
        limit.remove_mem_hooks()
    assert error is not None
    assert ended(thread)
    with pytest.raises(MemoryError):
        scan.finish()


def test_batches_are_taken_while_memory_is_traced(file):
    """Tracing takes the interpreter lock, also in a thread that scans without it.

    The process ends without finalization: CPython 3.11.7 crashes there in one of 2,000 runs, if memory is traced and a
    joined thread has not quite ended. It does so without tailhook, too.
    """
    fd = filled(file, LARGE * 2)
    code = (
        "import os, threading, tracemalloc; from tailhook._core import RangeScan, ScanProgram, scan_range\n"
        "tracemalloc.start(); program = ScanProgram(table='records', columns=['offset'])\n"
        "scan = RangeScan(program, 1); batches = []\n"
        "run = lambda: (scan_range(0, 0, None, program, into=scan), batches.extend(scan.finish()))\n"
        "thread = threading.Thread(target=run); thread.start()\n"
        "batches += iter(scan.take, None); thread.join()\n"
        "print(sum(map(len, batches)), flush=True); os._exit(0)"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, stdin=fd, capture_output=True, text=True, timeout=HANGS_S, check=True)
    assert (done.stdout, done.stderr) == ("400000\n", "")


@pytest.mark.parametrize(("room", "error"), [(0, ValueError), (-1, OverflowError), ("2", TypeError)])
def test_a_scan_lets_at_least_one_batch_wait(room, error):
    with pytest.raises(error):
        RangeScan(RECORDS, room)
