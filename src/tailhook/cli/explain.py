"""`tailhook explain`: which parts of a message are code, and why its signals and keywords count or not."""

import argparse
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tailhook.cli.output import (
    CommandError,
    Commands,
    UsageError,
    check_stdout,
    coloured,
    command,
    positive,
    print_json,
    print_lines,
    replace_output,
    whole,
)
from tailhook.hook.answer import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.pictures.chosen_message import ChosenMessage
    from tailhook.pictures.explanation import Explanation
    from tailhook.transcripts.transcript import Transcript

STYLE_COLOURS = {"code": 2, "faint": 2, "counts": 32, "ignored": 33, "title": 1}  # ANSI
PIPE_COLUMNS = 100  # without a terminal


def add(commands: Commands) -> None:
    """Declare the command."""
    example = "tailhook explain session.jsonl --message 3 --html message.html"
    about = "show which parts of a message are code, and why its signals and keywords count or not"
    parser = command(commands, "explain", explain_message, about, example)
    parser.add_argument("transcript", metavar="TRANSCRIPT", help="the file of a session, or its URL")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--message", metavar="N", type=positive, help="the N-th message (default: the agent's newest)")
    chosen.add_argument("--offset", metavar="B", type=whole, help="the record whose line begins at this byte")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", metavar="FILE", help="write a page to this file; its name ends with .html")
    form.add_argument("--json", action="store_true", help="print JSON")


def explain_message(arguments: argparse.Namespace) -> None:
    """Print the message with its marks, also as JSON, or write it as a page."""
    # Here, because every command loads this module.
    from tailhook.hook.config import load
    from tailhook.hook.payload import project_root
    from tailhook.pictures.chosen_message import MessageNotFoundError, describe_content, list_facts
    from tailhook.pictures.explanation import explain_text
    from tailhook.pictures.explanation_lines import hidden_part, sum_up
    from tailhook.pictures.explanation_page import explanation_page
    from tailhook.pictures.explanation_text import draw_explanation
    from tailhook.pictures.markup import encode_markup
    from tailhook.transcripts.urls import without_credentials

    check_names(arguments.transcript, arguments.html, (".html",))
    if arguments.html is None:
        check_stdout("give --html FILE")
    with open_named(arguments.transcript) as transcript:
        try:
            chosen = choose_message(transcript, arguments)
        except MessageNotFoundError as error:
            raise CommandError(f"{plain(without_credentials(arguments.transcript))}: {error}") from None
        host = transcript.host
    facts = list_facts(chosen, host)
    try:
        root = project_root({})
    except FileNotFoundError:  # the current folder was removed: only the user's configuration counts
        root = ""
    tuned = load(root).get("memory", {}).get("profile") == "tuned"
    explanation = explain_text(chosen.text, chosen.role, chosen.excluded, tuned)
    name = Path(without_credentials(arguments.transcript)).name
    if arguments.html is not None:
        replace_output(arguments.html, encode_markup(explanation_page(explanation, chosen, facts, name)))
        print_lines(f"Wrote {plain(arguments.html)}.")
        return
    if arguments.json:
        print_json(list_explanation(explanation, chosen, host))
        return
    print_lines(paint(f"{chosen.title} of {plain(name)}", "title"), paint(plain(" · ".join(facts)), "faint"), "")
    if not chosen.text.strip():
        print_lines(plain(describe_content(chosen)))
        return
    width = shutil.get_terminal_size((PIPE_COLUMNS, 24)).columns
    print_lines(*draw_explanation(explanation, width, paint), "", *sum_up(explanation, chosen.role, chosen.excluded))
    if hidden := hidden_part(explanation):
        print_lines(hidden)


def open_named(name: str) -> "Transcript":
    """Open the transcript of a command. Print a fault of a readable one on stderr. Raises what `tailhook.open` raises.

    name: a path or a URL.
    """
    from tailhook.transcripts.transcript import open as open_transcript
    from tailhook.transcripts.urls import without_credentials

    transcript = open_transcript(name)
    if fault := transcript._open().fault:
        sys.stderr.write(f"tailhook: {plain(without_credentials(name))}: {fault}\n")
    return transcript


def choose_message(transcript: "Transcript", arguments: argparse.Namespace) -> "ChosenMessage":
    """Return the message that the arguments name."""
    from tailhook.pictures import chosen_message

    if arguments.message is not None:
        return chosen_message.numbered_message(transcript, arguments.message)
    if arguments.offset is not None:
        return chosen_message.record_message(transcript, arguments.offset)
    return chosen_message.newest_message(transcript)


def list_explanation(explanation: "Explanation", chosen: "ChosenMessage", host: str) -> dict[str, Any]:
    """Return an explained message for a program. Places are characters of its text."""
    ends = explanation.ends
    return {
        "host": host,
        "offset": chosen.offset,
        "records": chosen.records,
        "role": chosen.role,
        "model": chosen.model,
        "timestamp": chosen.time.isoformat() if chosen.time else None,
        "tools": chosen.tools,
        "tool_results": chosen.results,
        "excluded": chosen.excluded or None,
        "text": explanation.text,
        "code": [span._asdict() for span in explanation.code],
        "marks": [mark._asdict() for mark in explanation.marks],
        "ends": {"signal": ends[0], "modes": ends[1]} if ends else None,
        "scores": explanation.shares,
    }


def check_names(transcript: str, output: str | None, endings: tuple[str, ...]) -> None:
    """Raise UsageError if the transcript's name is empty, or the file to write has a wrong ending or is the transcript.

    output: the file to write, None without one.
    """
    if not transcript:
        raise UsageError("TRANSCRIPT is an empty name: give a file or a URL")
    if output is None:
        return
    if not output.endswith(endings):
        raise UsageError(
            f"{plain(output) or 'FILE'}: the name of the file to write must end with {' or '.join(endings)}"
        )
    with suppress(OSError, ValueError):  # one of them is missing, or is a URL
        if Path(transcript).samefile(output):
            raise UsageError(f"{plain(output)} is the transcript: give the name of another file")


def paint(words: str, style: str) -> str:
    """Return words in a style, if the output is a terminal."""
    return coloured(words, STYLE_COLOURS[style])
