"""Texts that could make a Markdown parser quadratic: a name for each, and a function for about n bytes of it."""

from __future__ import annotations

from itertools import count


def repeated(unit: str):
    return lambda n: unit * (n // len(unit.encode()) + 1)


def closed(opening: str, closing: str, between: str = ""):
    """Return a function that makes n bytes: half of them openings, then as many closings."""
    return lambda n: opening * (n // 2 // len(opening)) + between + closing * (n // 2 // len(closing))


def rising(make):
    """Return a function that makes make(1) + make(2) + ... up to at least n characters."""

    def build(n: int) -> str:
        parts, size, numbers = [], 0, count(1)
        while size < n:
            parts.append(make(next(numbers)))
            size += len(parts[-1])
        return "".join(parts)

    return build


WORST_CASES = {
    "nothing but backticks": repeated("`"),
    "backtick runs of all lengths": rising(lambda i: "`" * i + " "),
    "backtick runs of all lengths, then short ones": lambda n: (
        rising(lambda i: "`" * i + " ")(n // 2) + "`` " * (n // 6) + "` "
    ),
    "backtick runs without end over lines": rising(lambda i: "`" * i + "\na "),
    "open brackets": lambda n: "[" * n + "`a`",
    "close brackets": lambda n: "]" * n + "`a`",
    "nested brackets": closed("[", "]", "`a`"),
    "nested brackets with a definition": lambda n: "[a]: b\n\n" + closed("[", "]", "`a`")(n),
    "nested links": closed("[", "](b)", "`a`"),
    "links after open brackets": lambda n: closed("[", "[a](b)", "`a`")(n),
    "nested images": closed("![", "](b)", "`a`"),
    "images of links": repeated("![[]()"),
    "link starts": repeated("[a]("),
    "link starts with destinations": repeated("[a](b"),
    "link starts with pointed destinations": repeated("[a](<b"),
    "link starts with open titles": repeated("[a](b \"'"),
    "link starts with open titles in parentheses": repeated("[a](b (c "),
    "link starts with blanks": repeated("[a](" + " " * 50),
    "parentheses in a destination": lambda n: "`[a](" + closed("(", ")")(n),
    "escaped brackets": repeated("[\\]"),
    "long labels": lambda n: "[a]: b\n\n" + repeated("[" + "x" * 900)(n) + "]`a`",
    "labels looked up": lambda n: "[a]: b\n\n`a`" + repeated("[x]")(n),
    "labels looked up in full": lambda n: "[a]: b\n\n`a`" + repeated("[x][y]")(n),
    "definitions of one label": lambda n: repeated("[a]: b\n")(n) + "\n`a` [a][a]",
    "definitions of many labels": lambda n: rising(lambda i: f"[{i}]: b\n")(n) + "\n`a` [1][2]",
    "definitions with open titles": repeated("[a]: b\n'"),
    "definitions without destination": repeated("[a]:\n"),
    "labels over lines": lambda n: "[\n" + repeated("a\n")(n) + "]: b",
    "underlined definitions": repeated("[a]: b\n===\n"),
    "comment starts": repeated("a <!--"),
    "comment starts over lines": repeated("a <!--\n"),
    "instruction starts": repeated("a <?"),
    "declaration starts": repeated("a <!A"),
    "declaration starts in a quote": repeated("> a <!A\n"),
    "CDATA starts": repeated("a <![CDATA["),
    "tag starts": repeated("a <b c='"),
    "tag starts, both quotation marks": repeated("<a b='<a b=\""),
    "tags in attributes": repeated(" d=\"<a b=\" e='<a e='"),
    "attributes": lambda n: "a <b" + repeated(" c='d'")(n),
    "autolink starts": repeated("<http:a"),
    "mail starts": repeated("<a@b."),
    "angle brackets": repeated("<"),
    "list markers on a line": lambda n: repeated("- ")(n) + "a",
    "both list markers on a line": lambda n: repeated("- * ")(n) + "a",
    "ordered list markers on a line": lambda n: repeated("1. ")(n) + "a",
    "list markers, then blank lines": lambda n: "- " * (n // 4) + "a" + "\n" * (n // 2),
    "list markers, then lazy lines": lambda n: "- " * (n // 4) + "a" + "\nb" * (n // 4),
    "list markers, then lines indented half": lambda n: "- " * (n // 4) + "a" + ("\n" + " " * 1000 + "b") * (n // 2000),
    "nested list, one item a line": lambda n: "".join("  " * i + "- a\n" for i in range(int(n**0.5))),
    "quote markers on a line": lambda n: ">" * n + "a",
    "quote markers, then lazy lines": lambda n: ">" * (n // 2) + "a" + "\nb" * (n // 4),
    "quote markers, then blank lines": lambda n: (">" * 100 + "a\n\n") * (n // 100),
    "quotes and items, then blank lines": lambda n: "> - " * (n // 8) + "a" + "\n>" * (n // 4),
    "fence lines": repeated("```a`\n"),
    "fences in items": repeated("- ```\n"),
    "indented blank lines": lambda n: "    a\n" + repeated("     \n")(n),
    "blank lines": repeated("\n"),
    "carriage returns": repeated("\r"),
    "tabs": lambda n: "\t" * n,
    "paragraphs without anything, then a backtick": lambda n: repeated("a\n\n")(n) + "`a`",
    "lines of a paragraph": lambda n: "`a`\n" + repeated("a\n")(n) + "`a`",
    "tags over lines": lambda n: "a <b\n" + repeated("c\n")(n) + ">`a`",
    "HTML block that never ends": lambda n: "<!--\n" + repeated("--\n")(n),
    "underlines": repeated("a\n---\n"),
}
