"""The transcripts of a session's sub-agents, and where the records of a time begin in a transcript."""

import posix

from tailhook._core import forward_lines, get_text, parse_json, unix_time
from tailhook.hook.payload import MAX_RECORD_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SUB_AGENT_NAME = "agent-"  # the beginning of the name of a sub-agent's transcript (Claude Code 2.1.329)
TRANSCRIPT = ".jsonl"
MAX_FOLDER_DEPTH = 4  # of folders in a session's folder of sub-agents; workflows have folders of their own
FIRST_STRIDE = 1 << 16  # bytes before the end at which a time is looked for first; then four times as many
MAX_TIMELESS_BYTES = 1 << 16  # of records without a time, before a place counts as one without a time


def offset_before(fd: int, size: int, lowest: int, since: float) -> int | None:
    """Return an offset of an open transcript before all records since a time, None if all from `lowest` on are newer.

    An older record follows the offset. Looks at the times of a few records: what is read from there grows with what is
    new.
    """
    at, stride = size, FIRST_STRIDE
    while at > lowest:
        at = max(lowest, size - stride)
        stride *= 4
        found = first_time(fd, at, size)
        if found is not None and found < since:
            return at
    return None


def first_time(fd: int, start: int, end: int) -> float | None:
    """Return the time of the first record with one in a part of an open transcript, None if there is none nearby."""
    for _, line in forward_lines(fd, start, min(end, start + MAX_TIMELESS_BYTES), MAX_RECORD_BYTES):
        if (at := time_in(line)) is not None:
            return at
    return None


def time_at(fd: int, offset: int) -> float | None:
    """Return the time of the record at an offset of an open transcript (Unix seconds), None if it has none."""
    return next((time_in(line) for _, line in forward_lines(fd, offset, offset + 1, MAX_RECORD_BYTES)), None)


def time_in(line: bytes) -> float | None:
    """Return the time of a record (Unix seconds), None if it has none."""
    try:
        record = parse_json(line)
    except ValueError:
        return None
    return unix_time(get_text(record, "timestamp")) if isinstance(record, dict) else None


def agent_transcripts(transcript: str) -> "Iterator[tuple[float, str]]":
    """Yield the modification times and the paths of the transcripts in a session's own folder of sub-agents.

    Claude Code 2.1.2 and later have it beside the session's transcript. Raises OSError.
    """
    return listed_transcripts(f"{transcript.removesuffix(TRANSCRIPT)}/subagents", MAX_FOLDER_DEPTH)


def sub_agents(transcript: str, session_id: str) -> "Iterator[tuple[float, str]]":
    """Yield the modification times and the paths of the transcripts of a session's sub-agents. Raises OSError.

    Versions of Claude Code before 2.1.2 keep those of all sessions beside the session's transcript; each names its
    session.
    """
    own = transcript.removesuffix(TRANSCRIPT)
    yield from agent_transcripts(transcript)
    folder, _, name = own.rpartition("/")
    for changed, path in listed_transcripts(folder, 0):
        if session_of(path) in (name, session_id):
            yield changed, path


def listed_transcripts(folder: str, depth: int) -> "Iterator[tuple[float, str]]":
    """Yield the modification times and the paths of the sub-agents' transcripts in a folder and the folders in it.

    depth: of the folders in it.
    """
    try:
        entries = posix.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.name.startswith(SUB_AGENT_NAME) and entry.name.endswith(TRANSCRIPT):
                if entry.is_file(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False).st_mtime, entry.path
            elif depth and entry.is_dir(follow_symlinks=False):
                yield from listed_transcripts(entry.path, depth - 1)


def session_of(path: str) -> str:
    """Return the session's id in the first record of a transcript, "" if it names none."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except OSError:
        return ""
    try:
        for _, line in forward_lines(fd, 0, 1, MAX_RECORD_BYTES):
            record = parse_json(line)
            return get_text(record, "sessionId") if isinstance(record, dict) else ""
    except (OSError, ValueError):
        pass
    finally:
        posix.close(fd)
    return ""
