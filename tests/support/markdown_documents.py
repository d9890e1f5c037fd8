"""Difficult Markdown documents: short, and made of the characters that decide where code is.

A document is lines. A line has the prefix of the open containers, now and then cut short (lazy), shifted or with tabs.
Then come perhaps new containers, the start of a leaf block, and inline fragments. Some documents are only fragments in
any order.
"""

from __future__ import annotations

from random import Random

CONTAINERS = [
    "> ", ">", "- ", "* ", "+   ", "1. ", "1) ", "2. ", "10. ", "-\t", ">\t", "-     ", "-", "1.", "> > ", "- - ",
]  # fmt: skip
INDENTS = ["", "", "", "", "", " ", "  ", "   ", "    ", "     ", "\t", " \t", "  \t", "\t\t", "      "]
LEAVES = [
    "", "", "", "", "", "", "", "", "# ", "## ", "#", "####### ", "```", "```", "````", "~~~", "~~~", "``` a",
    "~~~ `b`", "```a`", "---", "***", "- - -", "_ _ _", "===", "=", "--", "-", "= =", "<!--", "<!-- a -->", "-->",
    "<pre>", "</pre>", "<script", "<style >", "<textarea>x</textarea>", "<?", "?>", "<!A", ">", "<![CDATA[", "]]>",
    "<div>", "</div>", "<p", "<a>", "</a >", "<a b='c'>", "<b", "<x y", "<pre/>", "[a]: b", "[a]: <b> 'c'",
    "[`a]: b", "[a]:", "[a]", "[b]: `c", "'`d'", "[a\\]b]: c (", "b \"`\"", "[É]: x", "\"\"", "'' `", "()",
    "[a]: b \"\"", "[a]: <> ''", "-\t\t", "1.\t", "+ \t", "</pre>", "<PRE>", "</DIV", "<hr/>", "<!a>", "\\",
]  # fmt: skip
INLINES = [
    "`", "`", "`", "`", "``", "``", "```", "a", "b", "c d", " ", " ", "\\", "\\`", "\\\\", "\\[", "*", "_", "**",
    "[", "[", "]", "]", "(", ")", "![", "!", "](", "](b)", "](`)", "](<`>)", "](b '`')", "](b \"", "](b (`))",
    "][a]", "][`a]", "][]", "[a]", "[a][b]", "[é]", "<", ">", "<b", "<a b=\"`\">", "<a b='", "'", "\"", "<a\n`>",
    "</a>", "</a `>", "<b c=`d`>", "/>", "=", "<http://a`b>", "<a@b.c>", "<a`@b.c>", "<a:`>", "<!--", "-->", "<!-->",
    "<!--->", "<!-- `a` -->", "--", "<?`?>", "<?", "?>", "<!a `>", "<!A", "<![CDATA[`]]>", "<![CDATA[", "]]>",
    "&amp;", "&#96;", "é", "\u00a0", "\x0b", "\x0c", "\0", "\ufeff", "😀", "#", " #", "{`}", "~~", "|", "\t", "  ",
]  # fmt: skip
ENDS = ["\n"] * 12 + ["\r\n", "\r", "\n\n", "\n \n", "\n\n\n", "\r\n\r\n"]


def document(random: Random) -> str:
    if random.random() < 0.15:
        return soup(random)
    end = random.choice(["\n", "\n", "\n", "\r\n", "\r", None])
    depth: list[str] = []
    out: list[str] = []
    for _ in range(random.randint(1, 7)):
        out.append(prefix(random, depth))
        while random.random() < 0.25:
            container = random.choice(CONTAINERS)
            depth.append(container)
            out.append(container)
        out.append(random.choice(INDENTS))
        out.append(random.choice(LEAVES))
        if random.random() < 0.7:
            out += random.choices(INLINES, k=random.randint(1, 8))
        line_end = random.choice(ENDS)
        out.append(line_end.replace("\n", end) if end and "\r" not in line_end else line_end)
    if random.random() < 0.3:
        out.pop()
    return "".join(out)


def prefix(random: Random, depth: list[str]) -> str:
    """Return the prefix that continues the containers of `depth`, now and then wrongly; may shorten `depth`."""
    if depth and random.random() < 0.2:
        del depth[random.randrange(len(depth)) :]
    if random.random() < 0.15:
        return random.choice(INDENTS)
    columns = 0
    out = []
    for container in depth:
        if ">" in container:
            piece = container
        elif random.random() < 0.1:
            piece = "\t"
        else:
            piece = " " * len(container.replace("\t", "   ") if container.strip() != container else container + " ")
        columns += len(piece)
        out.append(piece)
    if random.random() < 0.1:
        return "".join(out)[:-1]
    return "".join(out)


def soup(random: Random) -> str:
    atoms = INLINES + LEAVES + CONTAINERS + ["\n"] * 30 + ["    ", "\t", "\r\n", "\r"]
    return "".join(random.choices(atoms, k=random.randint(1, 40)))
