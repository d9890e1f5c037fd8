"""Where a Markdown text is code, according to markdown-it-py's commonmark preset.

Blocks come from token.map. Code spans and inline comments have no position there. So the inline rules are wrapped: they
note their matches in the content of a paragraph or heading. The rules that make the content are wrapped, too: they note
its bytes in the source.

The section "markdown-it-py set right" corrects its known differences from CommonMark. The numbers there are those of
docs/decisions/markdown-differences.md.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from itertools import accumulate

from markdown_it import MarkdownIt, helpers
from markdown_it.common.utils import MD_TRIM_CHARS
from markdown_it.rules_block import StateBlock

RAW = re.compile(r"<(?:pre|script|style|textarea)(?=[ \t>\n]|\Z)", re.IGNORECASE)


class Lines:
    """Maps each position of a content made by StateBlock.getLines to its position in the source.

    A line of the content is the end of a line of the source, so both are aligned at their ends. Blanks for a part of a
    tab come before all places in question.
    """

    def __init__(self, pieces: list[str], ends: list[int]):
        self.starts = list(accumulate(map(len, pieces), initial=0))
        self.ends = ends
        raw = "".join(pieces)
        self.trimmed = len(raw) - len(raw.lstrip(MD_TRIM_CHARS))

    def source(self, position: int) -> int:
        position += self.trimmed
        line = bisect_right(self.starts, position, hi=len(self.ends)) - 1
        return self.ends[line] - (self.starts[line + 1] - position)


class Columns(list):
    """10: corrects StateBlock.bsCount: the columns of a quote inside a quote add up there.

    The rule sets an item to the columns of its own prefix; `outer` are those of the quotes around.
    """

    def __init__(self, columns: list[int]):
        super().__init__(columns)
        self.outer = columns

    def __setitem__(self, line, columns):
        super().__setitem__(line, self.outer[line] + columns)


class State(StateBlock):
    """Notes the source of the newest content, and values for the corrections."""

    made: Lines

    def __init__(self, src, md, env, tokens):
        super().__init__(src, md, env, tokens)
        self.bsCount = Columns(self.bsCount)
        self.margins: list[int] = []
        self.text_only: set[int] = set()

    def getLines(self, begin: int, end: int, indent: int, keepLastLF: bool) -> str:
        content = super().getLines(begin, end, indent, keepLastLF)
        if not keepLastLF:
            rows = range(begin, end)
            pieces = [super(State, self).getLines(row, row + 1, indent, row < end - 1) for row in rows]
            self.made = Lines(pieces, [self.eMarks[row] + (row < end - 1) for row in rows])
        return content


# ---- markdown-it-py set right ---------------------------------------------------
#
# The numbers are those of docs/decisions/markdown-differences.md.

COMMENT = r"<!---?>|<!--[\s\S]*?-->"  # 1
ATTRIBUTE = r"""(?:[ \t\n]+[a-zA-Z_:][a-zA-Z0-9:._-]*(?:[ \t\n]*=[ \t\n]*(?:[^"'=<>` \t\n]+|'[^']*'|"[^"]*"))?)"""  # 2
TAG = rf"<[A-Za-z][A-Za-z0-9-]*{ATTRIBUTE}*[ \t\n]*/?>|</[A-Za-z][A-Za-z0-9-]*[ \t\n]*>"


def set_patterns_right() -> None:
    """Correct 1, 2, 3: comments; only spaces, tabs and line endings are blank; labels are compared by case folding."""
    inline = sys.modules["markdown_it.rules_inline.html_inline"]
    inline.HTML_TAG_RE = re.compile(rf"(?:{TAG}|{COMMENT}|<\?[\s\S]*?\?>|<![A-Za-z][^>]*>|<!\[CDATA\[[\s\S]*?\]\]>)")
    block = sys.modules["markdown_it.rules_block.html_block"]
    sequences = []
    for start, end, interrupts in block.HTML_SEQUENCES[:-1]:
        sequences.append((re.compile(start.pattern.replace("\\s", "[ \\t]"), start.flags), end, interrupts))
    sequences.append((re.compile(f"^(?:{TAG})[ \\t]*$"), block.HTML_SEQUENCES[-1][1], False))
    block.HTML_SEQUENCES[:] = sequences
    for name in ("rules_inline.link", "rules_inline.image", "rules_block.reference"):
        sys.modules["markdown_it." + name].normalizeReference = normal_label


def normal_label(label: str) -> str:
    return re.sub("[ \t\n]+", " ", label.strip(" \t\n")).casefold()


PUNCTUATION = "[!-/:-@\\[-`{-~]"


LABEL = re.compile(rf"\[(?=\]|[^]]*[^] \t\n])(?:\\{PUNCTUATION}|\\(?!{PUNCTUATION})|[^][\\])*\]")


def holds_link(tokens) -> bool:
    return any((token.type == "link_open" and not token.markup) or holds_link(token.children or []) for token in tokens)


class Helpers:
    """Parses the parts of links. Link texts call parseLinkLabel with a third argument, labels without it."""

    @staticmethod
    def parseLinkTitle(string, start, end, previous=None):
        title = helpers.parseLinkTitle(string, start, end, previous)
        if previous is None and string[start - 1] not in " \t\n":
            title.ok = title.can_continue = False  # 16
        title.str = title.str or "empty"  # 15
        return title

    @staticmethod
    def parseLinkLabel(state, start, disableNested=None):
        if disableNested is None:
            label = LABEL.match(state.src, start, state.posMax) if start == state.text_end + 1 else None  # 17
            return label.end() - 1 if label else -1  # 7
        end = state.text_end = helpers.parseLinkLabel(state, start, disableNested)
        if disableNested and "![" in state.src[start + 1 : max(end, 0)]:
            tokens = state.md.inline.parse(state.src[start + 1 : end], state.md, {**state.env, "noting": False}, [])
            return -1 if holds_link(tokens) else end  # 11
        return end

    @staticmethod
    def parseLinkDestination(string, start, end):
        string = re.sub(rf"(\\{PUNCTUATION})|\\", lambda match: match[1] or "a", string)  # 8
        return helpers.parseLinkDestination(string, start, end)


UNDERLINE = re.compile(r"[ \t]*(=+|-+)[ \t]*")


def knowing_lines(rule):
    """Return a rule that decides correctly whether a block may start on a line (4, 5, 6)."""

    def wrapped(state, start, end, silent):
        if not silent:
            return start not in state.text_only and rule(state, start, end, silent)
        indent = state.sCount[start]
        if indent < 0:  # 4: the line is text, as the reading of the quote around it has shown
            return False
        if indent < state.blkIndent:  # 5: the line leaves a list item, but is indented as code in the container outside
            margin = next(margin for margin in reversed(state.margins) if margin <= indent)
            if indent - margin >= 4:
                return False
        parent = state.parentType
        if parent == "reference":  # 6: a definition so far is a paragraph, too, and may be underlined
            line = state.src[state.bMarks[start] : state.eMarks[start]]
            if indent - state.blkIndent < 4 and UNDERLINE.fullmatch(line):
                return True
            state.parentType = "paragraph"
        try:
            return rule(state, start, end, silent)
        finally:
            state.parentType = parent

    return wrapped


def leaving_a_paragraph(rule):
    """Correct 6: a paragraph is open after a definition. A block that cannot interrupt a paragraph is text there."""

    def wrapped(state, start, end, silent):
        if not rule(state, start, end, silent):
            return False
        line = state.line
        if line < state.lineMax and not state.isEmpty(line):
            indent, parent = state.sCount[line], state.parentType
            state.parentType = "paragraph"
            terminators = state.md.block.ruler.getRules("paragraph")
            if not 0 <= indent <= state.blkIndent + 3 or not any(t(state, line, end, True) for t in terminators):
                state.text_only.add(line)
                state.sCount[line] = state.blkIndent
            state.parentType = parent
        return True

    return wrapped


def keeping_margins(tokenize):
    def wrapped(state, start, end):
        state.margins.append(state.blkIndent)
        try:
            tokenize(state, start, end)
        finally:
            state.margins.pop()

    return wrapped


def quoting(rule):
    """Correct 9 (a > that is indented as code continues no quote) and 10 (columns of quotes in quotes add up)."""

    def wrapped(state, start, end, silent):
        if silent:
            return rule(state, start, end, silent)
        too_deep = {
            line: state.sCount[line]
            for line in range(start + 1, end)
            if state.sCount[line] - state.blkIndent >= 4
            and state.src.startswith(">", state.bMarks[line] + state.tShift[line])
        }
        outer, columns = state.bsCount.outer, list(state.bsCount)
        state.bsCount.outer = columns
        for line in too_deep:
            state.sCount[line] = -1  # to the rule: left of the margin, and text if the line before is text
        try:
            return rule(state, start, end, silent)
        finally:
            for line, indent in too_deep.items():
                state.sCount[line] = indent
            state.bsCount = Columns(columns)
            state.bsCount.outer = outer

    return wrapped


# ---- the oracle -----------------------------------------------------------------


class Oracle:
    def __init__(self) -> None:
        self.md = MarkdownIt("commonmark", {"maxNesting": 100_000})
        self.md.validateLink = lambda _: True
        self.md.normalizeLink = lambda url: url
        self.md.normalizeLinkText = lambda text: text
        set_patterns_right()
        self.md.helpers = Helpers
        self.md.block.tokenize = keeping_margins(self.md.block.tokenize)
        self.contents: dict[int, Lines] = {}
        self.bases: list[int] = []
        self.found: list[tuple[str, int, int]] = []
        for rule in self.md.block.ruler.__rules__:
            if rule.name in ("paragraph", "lheading", "heading"):
                rule.fn = self.noting_content(rule.fn)
            if rule.name == "blockquote":
                rule.fn = quoting(rule.fn)
            if rule.name in ("fence", "blockquote", "hr", "list", "html_block", "heading"):
                rule.fn = knowing_lines(rule.fn)
            elif rule.name == "reference":
                rule.fn = leaving_a_paragraph(rule.fn)
        for rule in self.md.inline.ruler.__rules__:
            if rule.name in ("backticks", "html_inline"):
                rule.fn = self.noting_match(rule.fn)
            elif rule.name == "image":
                rule.fn = self.noting_description(rule.fn)

    def noting_content(self, rule):
        def wrapped(state, start, end, silent):
            if not rule(state, start, end, silent):
                return False
            if not silent:
                token = state.tokens[-2]
                if state.tokens[-1].markup.startswith("#"):
                    at = state.bMarks[start] + state.tShift[start] + len(state.tokens[-1].markup)
                    self.contents[id(token)] = Lines([state.src[at : state.eMarks[start]]], [state.eMarks[start]])
                else:
                    self.contents[id(token)] = state.made
            return True

        return wrapped

    def noting_match(self, rule):
        def wrapped(state, silent):
            start, tokens = state.pos, len(state.tokens)
            if not rule(state, silent):
                return False
            if not silent and len(state.tokens) > tokens and "noting" not in state.env:
                token = state.tokens[-1]
                if token.type == "code_inline":
                    self.found.append(("span", self.bases[-1] + start, self.bases[-1] + state.pos))
                elif token.type == "html_inline" and token.content.startswith("<!--"):
                    self.found.append(("comment", self.bases[-1] + start, self.bases[-1] + state.pos))
            return True

        return wrapped

    def noting_description(self, rule):
        def wrapped(state, silent):
            self.bases.append(self.bases[-1] + state.pos + 2)
            try:
                return rule(state, silent)
            finally:
                self.bases.pop()

        return wrapped

    def spans(self, text: str) -> list[tuple[str, int, int]]:
        source = re.sub(r"\r\n?", "\n", text).replace("\0", "\ufffd")
        if not source.endswith("\n"):
            source += "\n"
        returns = [match.start() for match in re.finditer("\r\n", text)]
        crlf = [at - i for i, at in enumerate(returns)]
        starts = [0, *(match.end() for match in re.finditer("\n", source))]
        self.contents.clear()
        env: dict = {}
        tokens = []
        self.md.block.tokenize(state := State(source, self.md, env, tokens), 0, state.lineMax)
        spans = []
        for token in tokens:
            if token.type in ("fence", "code_block", "html_block"):
                kind = {"fence": "fence", "code_block": "indented"}.get(token.type)
                if token.type == "html_block":
                    html = token.content.lstrip(" \t")
                    kind = "comment" if html.startswith("<!--") else "raw" if RAW.match(html) else None
                if kind:
                    spans.append((kind, starts[token.map[0]], starts[token.map[1]]))
            elif token.type == "inline" and ("`" in token.content or "<!--" in token.content):
                self.found, self.bases = [], [0]
                self.md.inline.parse(token.content, self.md, env, [])
                lines = self.contents[id(token)]
                spans += [(kind, lines.source(start), lines.source(end - 1) + 1) for kind, start, end in self.found]
        return [
            (kind, min(start + bisect_left(crlf, start), len(text)), min(end + bisect_left(crlf, end), len(text)))
            for kind, start, end in spans
        ]
