"""An agent's Markdown in blocks that both boards draw. Pure: no I/O.

The code map (CommonMark 0.31.2) decides what is code; the other marks are read line by line. A block holds text only:
no HTML, no address that can be followed. What is not recognized stays as it was written.
"""

import re
from bisect import bisect_right
from operator import itemgetter
from typing import NamedTuple

from tailhook import Span, _core
from tailhook.plates.fields import BlockKind, BlockOut, TextKind, TextOut

MAX_BLOCKS = 1000  # the rest of a text is one block, as it was written
MAX_LEVEL = 4  # of a nested list
MAX_COLUMNS = 20  # of a table
CODE_IN_TEXT = "span", "comment", "raw"  # stays inside of its paragraph; code of any other kind is a block
# Every pattern below is linear: a repeated part cannot match what follows it, or has a bound.
FENCE = re.compile(r"(?P<before>[^`~]{0,40}?)(?P<fence>`{3,}|~{3,})(?P<language>.*)")
HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
QUOTE = re.compile(r" {0,3}> ?")
ITEM_MARK = re.compile(r"[-*+]|\d{1,9}[.)]")
ITEM = re.compile(rf"([ \t]{{0,40}})({ITEM_MARK.pattern})[ \t]+(?:\[([ xX])\][ \t]+)?")
CELL_RULE = r"[ \t]{0,20}:?-{1,200}:?[ \t]{0,20}"
TABLE_RULE = re.compile(rf"[ \t]{{0,3}}\|?(?:{CELL_RULE}\|){{1,20}}(?:{CELL_RULE})?$")
STYLES: dict[str, TextKind] = {"strong": "strong", "emphasis": "emphasis", "stressed": "emphasis"}
INLINE = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|\*\*(?P<strong>[^\s*\n][^*\n]{0,500})(?<!\s)\*\*"
    r"|(?<![*\w])\*(?P<emphasis>[^\s*\n][^*\n]{0,500})(?<!\s)\*(?![*\w])"
    r"|(?<![_\w])_(?P<stressed>[^\s_\n][^_\n]{0,500})(?<!\s)_(?![_\w])"
    r"|!?\[(?P<words>[^\[\]\n]{1,500})\]\((?P<address>[^()\s]{1,1000})\)"
)


class Block:
    """A block that may still get lines.

    ranges: the parts of the text that belong to it, one for each line.
    """

    def __init__(self, kind: BlockKind, level: int = 0, mark: str = "") -> None:
        self.kind: BlockKind = kind
        self.level = level
        self.mark = mark
        self.ranges: list[tuple[int, int]] = []


class TextLine(NamedTuple):
    """A line of the text without its end.

    start, end: its place in the text.
    """

    start: int
    end: int


def read_markdown(text: str) -> list[BlockOut]:
    """Return the blocks of a Markdown text, in order.

    >>> [(block["kind"], block["texts"][0]["text"]) for block in read_markdown("# Done\\n- `a` works")]
    [('heading', 'Done'), ('item', 'a')]
    """
    return Reader(text).read()


class Reader:
    """Reads the blocks of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        spans = _core.code_spans(text, Span)
        self.codes = [span for span in spans if span.kind not in CODE_IN_TEXT]
        self.inline = [span for span in reversed(spans) if span.kind in CODE_IN_TEXT]  # the next one is the last
        self.blocks: list[BlockOut] = []
        self.open: Block | None = None

    def read(self) -> list[BlockOut]:
        """Return all blocks."""
        codes = iter(self.codes)
        code = next(codes, None)
        at = 0
        while at < len(self.text):
            if len(self.blocks) >= MAX_BLOCKS:
                self.close()
                self.add("paragraph", [{"kind": "text", "text": self.text[at:]}])
                break
            end = self.text.find("\n", at)
            line = TextLine(at, len(self.text) if end < 0 else end)
            while code and code.end <= at:
                code = next(codes, None)
            if code and code.start <= at:
                self.close()
                self.add_code(code)
                at = code.end
                continue
            at = self.read_line(line) + 1
        self.close()
        return self.blocks

    def read_line(self, line: TextLine) -> int:
        """Read a line, or all lines of a table. Returns the end of the last one."""
        words = self.text[line.start : line.end]
        if not words.strip():
            self.close()
        elif found := HEADING.match(words):
            self.begin(Block("heading", len(found[1])), line.start + found.end(), line.end)
            self.close()
        elif RULE.match(words):
            self.close()
            self.add("rule", [])
        elif rows := self.rows_of_table(line):
            self.close()
            self.add_table(rows)
            return rows[-1].end
        elif found := QUOTE.match(words):
            if self.open is None or self.open.kind != "quote":
                self.begin(Block("quote"))
            self.extend(line.start + found.end(), line.end)
        elif found := ITEM.match(words):
            level = min(MAX_LEVEL, len(found[1].expandtabs(4)) // 2)
            task = found[3] and ("☐" if found[3] == " " else "☑")
            mark = task or (found[2] if found[2][0].isdigit() else "•")
            self.begin(Block("item", level, mark), line.start + found.end(), line.end)
        else:
            if self.open is None:
                self.begin(Block("paragraph"))
            blanks = len(words) - len(words.lstrip())
            self.extend(line.start + blanks, line.end)
        return line.end

    def begin(self, block: Block, *part: int) -> None:
        """Close the open block and open this one.

        part: the start and the end of its first line; none if it has none yet.
        """
        self.close()
        self.open = block
        if part:
            self.extend(*part)

    def extend(self, start: int, end: int) -> None:
        """Add a line to the open block."""
        if self.open:
            self.open.ranges.append((start, end))

    def close(self) -> None:
        """Add the open block, if there is one."""
        block, self.open = self.open, None
        if block:
            self.add(block.kind, self.read_inline(block.ranges), block.level, block.mark)

    def add(self, kind: BlockKind, texts: list[TextOut], level: int = 0, mark: str = "") -> None:
        """Add a block without rows."""
        self.blocks.append({"kind": kind, "level": level, "mark": mark, "texts": texts, "rows": []})

    def add_code(self, code: Span) -> None:
        """Add a block of code: without its fences, and without the marks of the lists and quotes around it."""
        lines = self.text[code.start : code.end].removesuffix("\n").split("\n")
        language = ""
        if code.kind == "fence" and (found := FENCE.match(lines[0])):
            before, fence, language = found["before"], found["fence"], found["language"].strip()
            for depth, mark in enumerate(ITEM_MARK.findall(before)):
                self.add("item", [], min(MAX_LEVEL, depth), mark if mark[0].isdigit() else "•")
            lines = [cut_prefix(line, len(before), before.count(">")) for line in lines[1:]]
            if lines and lines[-1].strip().startswith(fence) and not lines[-1].strip(fence[0] + " \t"):
                del lines[-1]
        elif lines:
            blanks = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
            lines = [line[blanks:] for line in lines]
        self.add("code", [{"kind": "text", "text": "\n".join(lines).rstrip()}], 0, language)

    def rows_of_table(self, head: TextLine) -> list[TextLine]:
        """Return the lines of the table that begins with a line, or [] if none begins there."""
        if "|" not in self.text[head.start : head.end]:
            return []
        rule = self.line_after(head)
        if rule is None or not TABLE_RULE.match(self.text[rule.start : rule.end]):
            return []
        rows = [head]
        last = rule
        while (line := self.line_after(last)) and "|" in self.text[line.start : line.end] and len(rows) < MAX_BLOCKS:
            rows.append(line)
            last = line
        return rows if len(rows) > 1 else []

    def line_after(self, line: TextLine) -> TextLine | None:
        """Return the next line, or None at the end of the text."""
        start = line.end + 1
        if start >= len(self.text):
            return None
        end = self.text.find("\n", start)
        return TextLine(start, len(self.text) if end < 0 else end)

    def add_table(self, rows: list[TextLine]) -> None:
        """Add a table."""
        cells = [[self.read_inline([cell]) for cell in self.cells_of(row)] for row in rows]
        self.blocks.append({"kind": "table", "level": 0, "mark": "", "texts": [], "rows": cells})

    def cells_of(self, row: TextLine) -> list[tuple[int, int]]:
        """Return the places of the cells in a line of a table."""
        start, end = row
        while start < end and self.text[start] in " \t":
            start += 1
        while end > start and self.text[end - 1] in " \t":
            end -= 1
        start += self.text[start:end].startswith("|")
        end -= self.text[start:end].endswith("|")
        cells: list[tuple[int, int]] = []
        while len(cells) < MAX_COLUMNS - 1 and (bar := self.text.find("|", start, end)) >= 0:
            cells.append((start, bar))
            start = bar + 1
        found = [*cells, (start, end)]
        return [
            (begin + len(cell) - len(cell.lstrip()), stop - len(cell) + len(cell.rstrip()))
            for begin, stop in found
            for cell in [self.text[begin:stop]]
        ]

    def read_inline(self, ranges: list[tuple[int, int]]) -> list[TextOut]:
        """Return the text of a block in parts: code, and words in bold or italic type."""
        joined, codes = self.join(ranges)
        masked = list(joined)
        for start, end in codes:
            masked[start:end] = "x" * (end - start)
        texts: list[TextOut] = []
        at = 0
        for found in INLINE.finditer("".join(masked)):
            name = found.lastgroup or ""
            shown = "words" if name == "address" else name
            texts += styled(joined, codes, "text", at, found.start())
            texts += styled(joined, codes, STYLES.get(shown, "text"), *found.span(shown))
            if name == "address":
                texts.append({"kind": "text", "text": f" ({joined[slice(*found.span(name))]})"})
            at = found.end()
        return texts + styled(joined, codes, "text", at, len(joined))

    def join(self, ranges: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
        """Return the lines of a block as one text, and the places of code in that text."""
        lines, codes = [], []
        length = 0
        for start, end in ranges:
            while self.inline and self.inline[-1].end <= start:
                self.inline.pop()
            for span in reversed(self.inline):
                if span.start >= end:
                    break
                codes.append((length + max(start, span.start) - start, length + min(end, span.end) - start))
            lines.append(self.text[start:end])
            length += end - start + 1
        return "\n".join(lines), codes


def styled(text: str, codes: list[tuple[int, int]], kind: TextKind, start: int, end: int) -> list[TextOut]:
    """Return a part of a text: its code, and the words between that in a style.

    codes: the places of code, in order.
    """
    found: list[TextOut] = []
    for left, right in codes[bisect_right(codes, start, key=itemgetter(1)) :]:
        if left >= end:
            break
        if start < left:
            found.append({"kind": kind, "text": text[start:left]})
        code = text[left:right].strip("`")
        found.append({"kind": "code", "text": code.strip(" ") or code})
        start = right
    if start < end:
        found.append({"kind": kind, "text": text[start:end]})
    return found


def cut_prefix(line: str, width: int, quotes: int) -> str:
    """Return a line of a fence without the marks of the lists and quotes around it.

    width: characters before the fence, at most so many are cut.
    quotes: how many of the marks are of quotes.
    """
    cut = 0
    while cut < min(width, len(line)) and (line[cut] in " \t" or (line[cut] == ">" and quotes > 0)):
        quotes -= line[cut] == ">"
        cut += 1
    return line[cut:]
