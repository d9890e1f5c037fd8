"""`tailhook anatomy`: where the bytes of a transcript are, by kind of record and over time, as a picture."""

import argparse
from pathlib import Path

from tailhook.cli.explain import check_names, open_named
from tailhook.cli.output import CommandError, Commands, command, print_lines, replace_output
from tailhook.hook.answer import plain


def add(commands: Commands) -> None:
    """Declare the command."""
    about = "draw where the bytes of a transcript are, by kind of record and over time"
    parser = command(commands, "anatomy", draw, about, "tailhook anatomy session.jsonl -o session.html")
    parser.add_argument("transcript", metavar="TRANSCRIPT", help="the file of a session, or its URL")
    parser.add_argument(
        "-o", dest="output", metavar="FILE", required=True, help="the picture (.svg), or a page with figures (.html)"
    )


def draw(arguments: argparse.Namespace) -> None:
    """Write the picture or the page."""
    # Here, because every command loads this module.
    from tailhook.pictures.anatomy import measure_transcript
    from tailhook.pictures.anatomy_page import anatomy_page
    from tailhook.pictures.anatomy_svg import anatomy_file
    from tailhook.pictures.markup import encode_markup
    from tailhook.transcripts.urls import without_credentials

    check_names(arguments.transcript, arguments.output, (".svg", ".html"))
    with open_named(arguments.transcript) as transcript:
        anatomy = measure_transcript(transcript)
    lines = anatomy.records
    broken = anatomy.records_by_kind.get("broken", 0)
    if lines == broken:
        reason = f"no line of it is a record ({lines:,} broken)" if lines else "it is empty"
        raise CommandError(f"{plain(without_credentials(arguments.transcript))}: {reason}, so there is nothing to draw")
    name = Path(without_credentials(arguments.transcript)).name
    picture = anatomy_page if arguments.output.endswith(".html") else anatomy_file
    replace_output(arguments.output, encode_markup(picture(anatomy, name)))
    print_lines(f"Wrote {plain(arguments.output)}.")
