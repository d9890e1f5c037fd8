"""Functions for the processes of distributed engines: a read task that dies once, and Daft on Ray."""

import json
import os
import signal
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import tailhook
from tailhook.fleet import engines, plan

KILLED = "TAILHOOK_TEST_KILLED"  # names a file that does not exist until a worker has died
PATTERNS = ["e", "TODO"]


def question(sources, table, **options):
    """Return the question for every engine."""
    patterns = {"patterns": PATTERNS, "in_code": None} if table == "matches" else {}
    return tailhook.scan(sources, table, **patterns, **options)


def plain(value):
    """Return a value in JSON's form, the same for every engine."""
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def sorted_rows(asked, dicts):
    """Return rows of an engine, {column: value} each, as sorted JSON texts."""
    return sorted(json.dumps([plain(row[name]) for name in asked.columns]) for row in dicts)


def local_rows(asked):
    """Return the rows of the local engine in the form of `sorted_rows`."""
    return sorted_rows(asked, [row._asdict() for row in asked.rows()])


class DyingReader(engines.TaskReader):
    """Reads a task, but kills the first worker that has read something."""

    def tables(self, task, limit=None):
        for found in super().tables(task, limit):
            yield found
            if not len(found):
                continue
            try:
                os.close(os.open(os.environ[KILLED], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def one_worker_dies():
    """Let the first worker that reads something die, and check that it died."""
    killed = Path(os.environ[KILLED])
    killed.unlink(missing_ok=True)
    original, engines.TaskReader = engines.TaskReader, DyingReader
    try:
        yield
    finally:
        engines.TaskReader = original
    assert killed.exists()


def small_tasks():
    """Cut files into ranges of 4 KB, and sort halves into many buckets."""
    engines.make_tasks = lambda files: plan.make_tasks(files, 4096)
    engines.BUCKET_BYTES = 4096


if __name__ == "__main__":
    import daft
    import ray

    small_tasks()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    daft.set_runner_ray()
    answers = {}
    folder, bucket, found, *tables = sys.argv[1:]
    for name in tables:
        wanted = question(folder, name)
        answers[name] = sorted_rows(wanted, wanted.to_daft().to_pylist())
    for name in ("records", "usage"):
        with one_worker_dies():
            wanted = question(folder, name)
            answers[f"{name} after a kill"] = sorted_rows(wanted, wanted.to_daft().to_pylist())
    for name in ("matches", "sessions"):
        wanted = question(bucket, name)
        answers[f"{name} of objects"] = sorted_rows(wanted, wanted.to_daft().to_pylist())
    gone = Path(f"{found}.jsonl")
    wanted = question([folder, gone], "records")
    for errors in ("report", "raise"):
        gone.write_text('{"type":"user"}\n')
        frame = wanted.to_daft(errors=errors)
        gone.unlink()
        try:
            answers["without a file"] = sorted_rows(wanted, frame.to_pylist())
            answers["missing"] = wanted.report.skipped
        except Exception as error:  # Daft's own
            answers["error"] = str(error)
    Path(found).write_text(json.dumps(answers))  # Ray writes to stdout
