"""Scans of ranges, step by step."""

import threading

from support.host import HANGS_S
from tailhook._core import RangeScan, ScanProgram

RECORDS = ScanProgram(table="records", columns=["offset", "type", "text_bytes"])


def record(text="x", kind="user"):
    return b'{"type":"%s","message":{"role":"user","content":"%s"}}' % (kind.encode(), text.encode())


LARGE = (record() + b"\n") * 200_000


def begun(program=RECORDS, start=0, end=None):
    scan = RangeScan(program)
    scan.begin("t.jsonl", "s", "claude-code", start, end)
    return scan


def rows(scan):
    return [row for batch in scan.finish() for row in zip(*batch.columns(), strict=True)]


def filled(file, data):
    file.write(data)
    file.flush()
    return file.fileno()


def in_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def ended(thread):
    thread.join(HANGS_S)
    return not thread.is_alive()
