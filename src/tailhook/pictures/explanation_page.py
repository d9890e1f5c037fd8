"""An explained message as an HTML page: its marks in the text, and their reasons beside it."""

from itertools import count

from tailhook.pictures.chosen_message import ChosenMessage, describe_content
from tailhook.pictures.explanation import Explanation, TextMark
from tailhook.pictures.explanation_lines import ShownLine, TextRun, cut_lines, format_note, hidden_part, sum_up
from tailhook.pictures.markup import MONO_FONT, escape, make_page

EXPLANATION_STYLE = f"""
.sum p::before {{ content: "→ "; color: var(--faint); }}
.sum p {{ font-weight: 600; }}
.text {{ font: 13.5px/1.6 {MONO_FONT}; list-style: none; margin: 0; padding: 0; }}
.text li {{ display: grid; grid-template-columns: 2.2em minmax(0, 1fr); column-gap: 12px; }}
.text.noted > li {{ grid-template-columns: 2.2em minmax(0, 1fr) minmax(0, 29em); }}
.number {{ color: var(--faint); text-align: right; user-select: none; }}
.words {{ border-left: 2px solid var(--line); overflow-wrap: anywhere; padding-left: 12px; tab-size: 4;
  white-space: pre-wrap; }}
.code .words {{ border-left-style: dotted; border-color: var(--faint); }}
code {{ color: var(--faint); font: inherit; font-style: italic; }}
mark {{ border-radius: 3px; color: inherit; padding: 1px 2px; }}
mark.counts {{ background: var(--good-back); box-shadow: inset 0 -2px var(--good); color: var(--good);
  font-weight: 700; }}
mark.ignored {{ background: var(--bad-back); border-bottom: 2px dashed var(--bad); color: var(--bad); }}
mark sup {{ font-size: 9px; font-weight: 700; line-height: 0; margin-left: 1px; user-select: none; }}
.notes {{ font: 12.5px/1.5 system-ui, sans-serif; list-style: none; margin: 0; padding: 1px 0 3px; }}
.text .notes li {{ display: block; padding-left: 3.8em; text-indent: -3.8em; }}
.notes .counts {{ color: var(--good); }}
.notes .ignored {{ color: var(--bad); }}
.notes b {{ display: inline-block; text-indent: 0; width: 1.8em; text-align: right; margin-right: .4em; }}
.notes i {{ display: inline-block; font-style: normal; text-indent: 0; width: 1.4em; }}
@media (max-width: 820px) {{
  .text li, .text.noted > li {{ grid-template-columns: 2em minmax(0, 1fr); column-gap: 8px; }}
  .notes {{ border-left: 2px solid var(--line); grid-column: 2; padding-left: 12px; }}
  body {{ padding: 14px 12px 32px; }}
  .card {{ padding: 10px 12px; }}
}}
"""


def explanation_page(explanation: Explanation, chosen: ChosenMessage, facts: list[str], name: str) -> str:
    """Return the page.

    facts: about the message.  name: of the transcript.
    """
    numbers = count(1)
    lines = "\n".join(draw_line(explanation.text, line, numbers) for line in cut_lines(explanation))
    sums = "".join(f"<p>{escape(words)}</p>" for words in sum_up(explanation, chosen.role, chosen.excluded))
    hidden = hidden_part(explanation)
    style = "text noted" if explanation.marks else "text"
    text = f'<ol class="{style}" aria-label="The text, line by line">\n{lines}\n</ol>'
    if not explanation.text.strip():
        sums, text = "", f"<p>{escape(describe_content(chosen))}</p>"
    body = f"""<header>
<h1>{escape(chosen.title)} of {escape(name)}</h1>
<p class="facts">{" · ".join(map(escape, facts))}</p>
</header>
<main>
{f'<section class="card sum" aria-label="Summary">{sums}</section>' if sums else ""}
<section class="card" aria-label="Text">
{text}
{f"<p>{escape(hidden)}</p>" if hidden else ""}
</section>
<p class="facts">Code is grey and slanted, and its lines have a dotted bar. A mark that counts is underlined and has
a ✓; one that does not count has a dashed line and a ✗.</p>
</main>"""
    return make_page(f"{chosen.title} of {name}", EXPLANATION_STYLE, body)


def draw_line(text: str, line: ShownLine, numbers: "count[int]") -> str:
    """Return one line of the text with its notes.

    numbers: for the next marks.
    """
    named = {mark: next(numbers) for mark in line.marks}
    words = "".join(draw_run(text, run, named) for run in line.runs)
    notes = "".join(
        f'<li id="note-{number}" class="{style_of(mark)}"><b>{number}</b><i>{"✓" if mark.counts else "✗"}</i>'
        f"{escape(format_note(mark))}</li>"
        for mark, number in named.items()
    )
    style = ' class="code"' if line.is_code else ""
    listed = f'<ul class="notes">{notes}</ul>' if notes else ""
    return f'<li{style}><span class="number">{line.number}</span><span class="words">{words}</span>{listed}</li>'


def draw_run(text: str, run: TextRun, named: dict[TextMark, int]) -> str:
    """Return a part of a line.

    named: the marks' numbers.
    """
    words = "\t".join(map(escape, text[run.start : run.end].split("\t")))
    if run.is_code:
        words = f"<code>{words}</code>"
    number = named.get(run.mark) if run.mark is not None else None
    if run.mark is None or number is None:
        return words
    here = [other for mark, other in named.items() if (mark.start, mark.end) == (run.mark.start, run.mark.end)]
    badge = f"<sup>{','.join(map(str, here))}</sup>" if run.end == run.mark.end else ""
    described = f' aria-describedby="{" ".join(f"note-{other}" for other in here)}"'
    return f'<mark class="{style_of(run.mark)}"{described}>{words}{badge}</mark>'


def style_of(mark: TextMark) -> str:
    """Return the class of a mark and of its note."""
    return "counts" if mark.counts else "ignored"
