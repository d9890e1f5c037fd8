"""`tailhook memory explain`: what would be reported of a transcript, and why."""

import argparse
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from tailhook._core import forward_lines
from tailhook.cli.output import CommandError, Commands, add_json, coloured, command, counted, group, print_facts
from tailhook.hook.answer import plain
from tailhook.hook.event import HookEvent
from tailhook.hook.memory import Mark, Session, read_memory_config
from tailhook.hook.payload import project_root
from tailhook.hook.translated import TranslatedEvent
from tailhook.hosts import DEFAULT, NAMES, RECORDED, find_translated_host
from tailhook.hosts.reading import MAX_FIRST_RECORD_BYTES, parse_host_record
from tailhook.machines import memory


def add(commands: Commands) -> None:
    """Declare the group's commands."""
    example = "tailhook memory explain ~/.claude/projects/-home-me-project/session.jsonl"
    actions = group(commands, "memory", "show what the memory machine would report", example)
    about = "print what would be reported for a transcript, with the score of each line"
    parser = command(actions, "explain", explain, about, example)
    parser.add_argument("transcript", metavar="TRANSCRIPT", help="the JSONL file of a session")
    add_json(parser)


def explain(arguments: argparse.Namespace) -> None:
    """Print every scored line, and the totals beside the thresholds."""
    event = stop_of(arguments.transcript)
    settings = memory.MemorySettings(read_memory_config(project_root({})))
    tuned = event.setting("memory", "profile") == "tuned"
    try:
        session = Session(event, settings.max_messages, Mark.none())
        if repeated := session.find_repeated(event):
            session = Session(event, settings.max_messages, Mark.none(), repeated)
    except OSError as error:
        raise CommandError(f"{plain(arguments.transcript)}: {error.strerror}") from None
    if not session.messages:
        raise CommandError(f"{plain(arguments.transcript)}: {why_no_message(event.transcript_path())}")
    facts = session.facts(tuned, settings.thresholds, False)
    found: dict[str, Any] = {
        "transcript": arguments.transcript,
        "profile": "tuned" if tuned else "seed",
        "messages": len(session.messages),
        "cut": session.is_cut,
        "enabled": settings.enabled,
        "categories": {category: explained(facts, category) for category in memory.CATEGORIES},
    }
    points = memory.summary_score(facts.tool_uses, facts.tools, facts.exchanges)
    found["categories"][memory.SUMMARY] = {
        "score": points,
        "threshold": settings.thresholds[memory.SUMMARY],
        "passes": 0 < points >= settings.thresholds[memory.SUMMARY],
        "tool_uses": facts.tool_uses,
        "tools": facts.tools,
        "exchanges": facts.exchanges,
    }
    print_facts(arguments, found, *format_explanation(found))


def why_no_message(transcript: str) -> str:
    """Return why a transcript has no message.  transcript: its path. Raises OSError."""
    from tailhook.transcripts.sources import MARK_BYTES_OF_FILE, is_compressed  # here, because it is slow to import

    with Path(transcript).open("rb") as file:
        if is_compressed(file.read(MARK_BYTES_OF_FILE)):
            return "it is compressed, and has to be unpacked first"
    return "there is no message in it"


def stop_of(transcript: str) -> HookEvent:
    """Return a stop of the agent host that has written a transcript.  transcript: its path."""
    from tailhook.transcripts.host_records import name_of_host, recognize  # here, because it is slow to import

    payload, host = {"transcript_path": transcript}, DEFAULT
    stop = HookEvent(payload, "Stop")
    path = Path(stop.transcript_path())
    with suppress(OSError):  # its reading fails later, with the reason
        if path.is_file():
            with path.open("rb") as file:
                host = name_of_host(recognize(file))
                if host == DEFAULT:
                    host = unrecorded_host(file)
    if host == DEFAULT:
        return stop
    return TranslatedEvent(find_translated_host(host), payload, "Stop", "", os.getppid())


def unrecorded_host(file: BinaryIO) -> str:
    """Return the host whose hooks read a transcript while the library does not, by its first message; or DEFAULT.

    Raises OSError.
    """
    hosts = [find_translated_host(name) for name in NAMES if name not in (DEFAULT, *RECORDED)]
    for _, line in forward_lines(file, 0, MAX_FIRST_RECORD_BYTES, MAX_FIRST_RECORD_BYTES):
        record = parse_host_record(line)
        if record.get("type") in ("assistant", "user"):
            break
        for host in hosts:
            if host.read_record(record) is not None:
                return host.NAME
    return DEFAULT


def explained(facts: memory.Facts, category: str) -> dict[str, Any]:
    """Return a category's score, and the lines that contribute to it."""
    scored = facts.of(category)
    points, threshold = memory.score(scored), facts.thresholds[category]
    lines = [
        {
            "message": line[1] + 1,
            "line": quote_bytes(line[2]),
            "keyword": quote_bytes(line[3]),
            "booster": quote_bytes(line[4]) or None,
            "share": memory.share(line),
        }
        for line in scored
    ]
    return {"score": points, "threshold": threshold, "passes": bool(scored) and points >= threshold, "lines": lines}


def quote_bytes(words: bytes) -> str:
    """Return words of a transcript in the form of the machine's message."""
    return memory.quote_line(words.decode("utf-8", "surrogatepass"))


def format_explanation(found: dict[str, Any]) -> list[str]:
    """Return the facts as lines for a person."""
    lines = [f"The last {found['messages']} messages, profile {found['profile']}."]
    if not found["enabled"]:
        lines.append("No hook reports them: `enabled` is false in the project's memory-config.json.")
    if found["cut"]:
        lines.append(f"Only the newest {memory.MAX_TEXT_BYTES >> 10} KiB of their text were scored.")
    for name, category in found["categories"].items():
        verdict = coloured("reported", 32) if category["passes"] else "not reported"
        lines += ["", f"{name:<16} score {category['score']:.2f}, threshold {category['threshold']:.2f}: {verdict}"]
        if name == memory.SUMMARY:
            figures = {"tool_uses": "tool uses", "tools": "tools", "exchanges": "exchanges"}
            lines.append("  " + ", ".join(counted(category[name], things) for name, things in figures.items()))
        for line in category.get("lines", ()):
            near = f" + {line['booster']}" if line["booster"] else ""
            lines.append(f"  {line['share']:.1f}  message {line['message']}, {line['keyword']}{near}: {line['line']}")
    return lines
