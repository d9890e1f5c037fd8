"""Where the bytes of a transcript are: by kind of record, and over time.

Reads the transcript once, and holds one line of it, at most MAX_BUCKETS pieces of its time and MAX_COUNTED_NAMES names.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from heapq import heappush, heappushpop
from typing import NamedTuple

from tailhook._core import Record, SeenRecords, signals
from tailhook.errors import RecordError
from tailhook.hook.answer import plain
from tailhook.hosts import DEFAULT, find_recorded_host
from tailhook.transcripts.transcript import Transcript, is_own_text, measured_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.hosts.protocols import RecordedHost

MAX_BUCKETS = 4096
MAX_COUNTED_NAMES = 200  # of unknown types, and of tools; further names count as OTHERS
MAX_COUNTED_NAME_CHARS = 40
MAX_LARGEST = 8  # listed records
OTHERS = "others"
# Kinds of records, in the order of stacking, with their names.
RECORD_KINDS = {
    "result": "tools' results",
    "call": "tool calls",
    "agent": "agent's words",
    "thinking": "thinking",
    "person": "prompts",
    "host": "host's messages",
    "summary": "compaction summaries",
    "sidechain": "sub-agents",
    "other": "other records",
    "broken": "broken lines",
    "blank": "blank lines",
}
EVENT_NAMES = {"prompts": "prompts", "tools": "tool calls", "compactions": "compactions", "signals": "signals"}


class Large(NamedTuple):
    """One of the largest records: its size in bytes, its offset and its kind."""

    size: int
    offset: int
    kind: str


class Anatomy(NamedTuple):
    """Where a transcript's bytes are.

    bytes_by_kind, records_by_kind: by the names of RECORD_KINDS, largest first.
    types: the bytes of records that are not messages, by type.
    tools: how often each tool was called.
    events: how many of each of EVENT_NAMES.
    largest: largest first.
    times: the counts over time; empty if no record has a time.
    offsets: the same over the bytes of the file.
    """

    host: str
    session_id: str
    size: int
    records: int
    start: datetime | None
    end: datetime | None
    bytes_by_kind: dict[str, int]
    records_by_kind: dict[str, int]
    types: dict[str, int]
    tools: dict[str, int]
    events: dict[str, int]
    largest: list[Large]
    times: "Buckets"
    offsets: "Buckets"


class Buckets:
    """Counts along a line of unknown length, in buckets of equal width. If there are too many, the width doubles.

    width: of a bucket.
    counts: by the bucket's number: its place divided by the width, rounded down.
    """

    def __init__(self, width: float = 1, max_buckets: int = MAX_BUCKETS) -> None:
        self.width = width
        self.max_buckets = max_buckets
        self.counts: dict[int, Counter[str]] = {}

    def add(self, place: float, counts: Mapping[str, int]) -> None:
        """Add counts at a place."""
        number = int(place // self.width)
        if number not in self.counts:
            while len(self.counts) >= self.max_buckets:
                self.widen()
                number = int(place // self.width)
            self.counts.setdefault(number, Counter())
        self.counts[number].update(counts)

    def widen(self) -> None:
        """Double the width."""
        self.width *= 2
        merged: dict[int, Counter[str]] = {}
        for number, counts in self.counts.items():
            merged.setdefault(number // 2, Counter()).update(counts)
        self.counts = merged

    def sorted(self) -> list[tuple[float, Counter[str]]]:
        """Return the start of each bucket, and its counts, in order."""
        return [(number * self.width, counts) for number, counts in sorted(self.counts.items())]


class NameCounter:
    """Counts by names from a transcript, with limits on their number and length."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, name: str | None, count: int) -> None:
        """Add a count to a name's."""
        shown = plain((name or "?")[:MAX_COUNTED_NAME_CHARS])
        known = shown in self.counts or len(self.counts) < MAX_COUNTED_NAMES
        self.counts[shown if known else OTHERS] += count

    def sorted(self) -> dict[str, int]:
        """Return the counts, the largest first."""
        return dict(sorted(self.counts.items(), key=lambda item: (-item[1], item[0])))


def measure_transcript(transcript: Transcript) -> Anatomy:
    """Return where a transcript's bytes are. Reads all of it, one line at a time."""
    sizes: Counter[str] = Counter()
    records: Counter[str] = Counter()
    events: Counter[str] = Counter(dict.fromkeys(EVENT_NAMES, 0))
    types, tools = NameCounter(), NameCounter()
    largest: list[Large] = []
    times, offsets = Buckets(), Buckets(width=256)
    session_id, last, size = "", None, 0
    host = None if transcript.host == DEFAULT else find_recorded_host(transcript.host)
    in_sub_agent = transcript.is_of_sub_agent
    span: list[datetime] = []
    waiting: Counter[str] = Counter()  # records before the first one with a time
    seen = SeenRecords()
    for offset, length, is_blank, record in measured_lines(transcript):
        size += length
        kind = "blank" if is_blank else "broken" if record is None else find_kind(record, host, in_sub_agent)
        found = Counter({f"bytes {kind}": length})
        is_new = record is not None and (seen.add(record) or (host is not None and host.RESTATES_MESSAGES))
        if not is_blank:
            records[kind] += 1
            found.update(find_events(record, in_sub_agent) if record is not None and is_new else {})
            one = Large(length, offset, kind)
            heappush(largest, one) if len(largest) < MAX_LARGEST else heappushpop(largest, one)
        sizes[kind] += length
        if record is not None:
            session_id = session_id or record.session_id or ""
            if kind == "other":
                types.add(original_type(record, host), length)
            for tool in record.tools if record.role == "assistant" and is_new else ():
                tools.add(tool.name, 1)
            if (time := record.time) is not None:
                last = time.timestamp()
                span = [min(span[0], time), max(span[1], time)] if span else [time, time]
        events.update({name: found[name] for name in EVENT_NAMES})
        offsets.add(offset, found)
        if last is None:
            waiting.update(found)
        else:
            times.add(last, found + waiting)
            waiting.clear()
    order = sorted(sizes, key=lambda kind: (-sizes[kind], kind))
    return Anatomy(
        transcript.host,
        plain(session_id[:MAX_COUNTED_NAME_CHARS]),
        size,
        sum(records.values()),
        span[0] if span else None,
        span[1] if span else None,
        {kind: sizes[kind] for kind in order},
        {kind: records[kind] for kind in order},
        types.sorted(),
        tools.sorted(),
        dict(events),
        sorted(largest, reverse=True),
        times,
        offsets,
    )


def find_kind(record: Record, host: "RecordedHost | None", in_sub_agent: bool) -> str:
    """Return the kind of a record, one of RECORD_KINDS. If several fit, the first one in this order.

    host: of the transcript, None for Claude Code.
    in_sub_agent: whether it is in a sub-agent's own transcript: all its records are the sub-agent's.
    """
    if (record.is_sidechain and not in_sub_agent) or (record.type == "progress" and has_nested_message(record)):
        return "sidechain"
    if record.role is None:
        return "thinking" if host is not None and record.subtype in host.THINKING_TYPES else "other"
    if record.role != "assistant":
        if record.tool_results:
            return "result"
        if record.is_compact_summary:
            return "summary"
        return "person" if record.is_prompt else "host"
    if record.is_api_error or record.is_meta:
        return "host"
    if record.tools:
        return "call"
    if record.text.strip():
        return "agent"
    return "other" if host is not None and original_type(record, host) in host.TOKEN_TYPES else "thinking"


def original_type(record: Record, host: "RecordedHost | None") -> str | None:
    """Return the host's own type of a record.  host: None for Claude Code."""
    if host is None:
        return record.type
    found = record.json().get("type")
    return found if isinstance(found, str) else None


def has_nested_message(record: Record) -> bool:
    """Return whether a `progress` record holds a record of a sub-agent (Claude Code 2.1.12 to 2.1.81)."""
    try:
        data = record.json().get("data")
    except RecordError:
        return False
    return isinstance(data, dict) and isinstance(data.get("message"), dict)


def find_events(record: Record, in_sub_agent: bool) -> dict[str, int]:
    """Return the counts of each of EVENT_NAMES in a record.  in_sub_agent: as for `find_kind`."""
    found = {}
    if record.is_prompt:
        found["prompts"] = 1
    elif record.subtype == "compact_boundary":
        found["compactions"] = 1
    elif record.role == "assistant":
        if count := len(record.tools):
            found["tools"] = count
        if is_own_text(record, in_sub_agent) and (count := len(signals(record.text))):
            found["signals"] = count
    return found
