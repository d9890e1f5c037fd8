"""Draws the blocks of an agent's Markdown, and what a session asks, as styled text.

All text is `rich.text.Text`: markup in it has no effect.
"""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tailhook.board.rows import DIM, TONE_COLOURS, TOOL
from tailhook.plates.fields import AskedOut, BlockOut, QuestionOut, TextKind, TextOut

CODE_BACK = "on #22262e"
TEXT_STYLES: dict[TextKind, str] = {"text": "", "code": TOOL, "strong": "bold", "emphasis": "italic"}


def draw_blocks(blocks: Sequence[BlockOut]) -> Group:
    """Return blocks with a blank line between them, but not between the items of a list."""
    drawn: list[RenderableType] = []
    for number, block in enumerate(blocks):
        if number and not block["kind"] == blocks[number - 1]["kind"] == "item":
            drawn.append("")
        drawn.append(draw_block(block))
    return Group(*drawn)


def draw_block(block: BlockOut) -> RenderableType:
    """Return one block."""
    words = draw_texts(block["texts"], "bold" if block["kind"] == "heading" else "")
    if block["kind"] == "code":
        return draw_code(words)
    if block["kind"] == "item":
        return draw_item(block["mark"], words, block["level"])
    if block["kind"] == "quote":
        return Padding(Text.assemble(words, style=DIM), (0, 0, 0, 2))
    if block["kind"] == "rule":
        return Rule(style=DIM)
    return draw_cells(block["rows"]) if block["kind"] == "table" else words


def draw_texts(texts: Iterable[TextOut], style: str = "") -> Text:
    """Return the text of a block.

    style: of the whole.
    """
    return Text.assemble(*((one["text"], TEXT_STYLES[one["kind"]]) for one in texts), style=style)


def draw_code(words: Text) -> Padding:
    """Return code on a ground of its own."""
    return Padding(Text.assemble(words, style=TOOL), (0, 1), style=CODE_BACK)


def draw_item(mark: str, words: RenderableType, level: int = 0) -> Padding:
    """Return the item of a list."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(Text(mark, DIM, no_wrap=True), words)
    return Padding(grid, (0, 0, 0, 1 + 2 * level))


def draw_cells(rows: Sequence[list[list[TextOut]]]) -> Table:
    """Return a table with a head."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for cell in rows[0]:
        table.add_column(draw_texts(cell, "bold"), overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(draw_texts, row[: len(rows[0])]))
    return table


def draw_asked(asked: AskedOut) -> Group:
    """Return what a session waits for."""
    head = Text(asked["words"], f"bold {TONE_COLOURS['attention']}").append(
        f" {asked['tool']}" if asked["tool"] else "", TOOL
    )
    parts: list[RenderableType] = ["", head]
    for number, question in enumerate(asked["questions"]):
        parts += [""] * bool(number) + draw_question(question)
    for given in asked["inputs"]:
        parts += [Text(given["name"], DIM)] if given["name"] else []
        parts.append(draw_code(Text(given["text"])))
    return Group(*parts, *([draw_blocks(asked["plan"])] if asked["plan"] else []))


def draw_question(question: QuestionOut) -> list[RenderableType]:
    """Return a question with its numbered choices."""
    head = Text.assemble((f"{question['header']}  " if question["header"] else "", DIM), (question["text"], "bold"))
    head.append("  several may be chosen" if question["takes_many"] else "", DIM)
    choices = [
        draw_item(str(number), Text(choice["label"]).append(f"  {choice['description']}".rstrip(), DIM))
        for number, choice in enumerate(question["choices"], 1)
    ]
    return [head, *choices]
