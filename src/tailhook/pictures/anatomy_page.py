"""The anatomy of a transcript as an HTML page: the picture, wide or narrow, and the figures as tables."""

from collections.abc import Sequence
from shlex import quote

from tailhook.pictures.anatomy import RECORD_KINDS, Anatomy
from tailhook.pictures.anatomy_svg import (
    KIND_STYLE,
    PICTURE_STYLE,
    draw_anatomy,
    format_share,
    list_anatomy_facts,
)
from tailhook.pictures.axis import format_bytes
from tailhook.pictures.markup import escape, make_page

MAX_ROWS = 12  # of the tables of names
WIDTHS = {"wide": 1100, "middle": 720, "narrow": 350}  # pixels of the pictures; the screen shows the best one
TABLE_STYLE = """
.picture { overflow-x: auto; padding: 0; }
.picture svg { display: none; height: auto; margin: 0 auto; max-width: 100%; }
.picture svg.middle { display: block; width: 100%; }
.tables { display: grid; gap: 0 20px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
caption { font-weight: 600; padding-bottom: 6px; text-align: left; }
th, td { border-top: 1px solid var(--line); padding: 4px 8px 4px 0; text-align: left; vertical-align: top; }
th { font-weight: 400; overflow-wrap: anywhere; }
thead th { color: var(--faint); font-size: 13px; border-top: 0; }
td, thead th + th { text-align: right; white-space: nowrap; }
@media (min-width: 1060px) {
  .picture svg.middle { display: none; }
  .picture svg.wide { display: block; }
}
@media (max-width: 700px) {
  body { padding: 14px 12px 32px; }
  .card { padding: 10px 12px; }
  .picture { padding: 0; }
  .picture svg.middle { display: none; }
  .picture svg.narrow { display: block; max-width: 520px; width: 100%; }
}
"""


def anatomy_page(anatomy: Anatomy, name: str) -> str:
    """Return the page.  name: of the transcript."""
    pictures = "".join(draw_anatomy(anatomy, name, width, size, False) for size, width in WIDTHS.items())
    kinds = [
        (RECORD_KINDS[kind], f"{anatomy.records_by_kind[kind]:,}", format_bytes(size), format_share(size, anatomy.size))
        for kind, size in anatomy.bytes_by_kind.items()
    ]
    types = [(kind, format_bytes(size)) for kind, size in list(anatomy.types.items())[:MAX_ROWS]]
    tools = [(tool, f"{count:,}") for tool, count in list(anatomy.tools.items())[:MAX_ROWS]]
    largest = [(RECORD_KINDS[one.kind], f"{one.offset}", format_bytes(one.size)) for one in anatomy.largest]
    tables = [
        draw_table("Kinds of records", ("kind", "lines", "bytes", "share"), kinds),
        draw_table("The largest lines", ("kind", "at byte", "bytes"), largest),
        draw_table("Tools", ("tool", "calls"), tools),
        draw_table("Records that are not messages", ("type", "bytes"), types),
    ]
    session = f'<p class="facts">Session {escape(anatomy.session_id)}</p>' if anatomy.session_id else ""
    command = f"tailhook explain {quote(name)} --offset BYTE"
    body = f"""<header>
<h1>The anatomy of {escape(name)}</h1>
<p class="facts">{" · ".join(map(escape, list_anatomy_facts(anatomy)))}</p>
{session}
</header>
<main>
<section class="card picture" aria-label="Picture">
{pictures}</section>
<div class="tables">
{"".join(tables)}</div>
<p class="facts">To see a record: <code>{escape(command)}</code></p>
</main>"""
    return make_page(f"The anatomy of {name}", f"{PICTURE_STYLE}{KIND_STYLE}{TABLE_STYLE}", body)


def draw_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; "" without rows.  rows: the first cell of each is its head."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{escape(words)}</th>' for words in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>\n'
        for row in rows
    )
    return f"""<section class="card"><table><caption>{escape(caption)}</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{body}</tbody></table></section>
"""
