"""The blocks of an agent's Markdown, for the boards."""

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support.cases import in_one_test

from tailhook.board.blocks import draw_blocks
from tailhook.plates.markdown import MAX_BLOCKS, read_markdown

MARKS = (
    "**",
    "*",
    "_",
    "`",
    "```\n",
    "~~~",
    "[a](b)",
    "|",
    "|-|\n",
    "> ",
    "- ",
    "1. ",
    "# ",
    "\\",
    "\n",
    "    ",
    "---\n",
    "<!--",
    "a ",
)


def kinds(text):
    """Return the kind, the level, the mark and the words of each block; the cells of a table's rows."""
    return [
        (
            block["kind"],
            block["level"],
            block["mark"],
            [["".join(part["text"] for part in cell) for cell in row] for row in block["rows"]]
            or "".join(part["text"] for part in block["texts"]),
        )
        for block in read_markdown(text)
    ]


def parts_of(block):
    """Return all parts of a block's text."""
    return [*block["texts"], *(part for row in block["rows"] for cell in row for part in cell)]


def styles(text):
    """Return the parts of a text's only block that are not plain."""
    [block] = read_markdown(text)
    return [(part["kind"], part["text"]) for part in block["texts"] if part["kind"] != "text"]


@in_one_test(
    ("text", "expected"),
    [
        ("", []),
        ("a\nb\n\nc", [("paragraph", 0, "", "a\nb"), ("paragraph", 0, "", "c")]),
        ("## b", [("heading", 2, "", "b")]),
        ("#b", [("paragraph", 0, "", "#b")]),
        ("- a\n  b\n  - c", [("item", 0, "•", "a\nb"), ("item", 1, "•", "c")]),
        ("2. a\n3) b", [("item", 0, "2.", "a"), ("item", 0, "3)", "b")]),
        ("- [ ] a\n- [x] b", [("item", 0, "☐", "a"), ("item", 0, "☑", "b")]),
        ("> a\n> b", [("quote", 0, "", "a\nb")]),
        ("---", [("rule", 0, "", "")]),
        ("```py\n# a\n- b\n```\nc", [("code", 0, "py", "# a\n- b"), ("paragraph", 0, "", "c")]),
        ("~~~ a b\nc", [("code", 0, "a b", "c")]),
        ("~~~\na\n\n  b", [("code", 0, "", "a\n\n  b")]),
        ("- a\n  ```\n  b\n    c\n  ```", [("item", 0, "•", "a"), ("code", 0, "", "b\n  c")]),
        ("> ```\n> > a\n> ```", [("code", 0, "", "> a")]),
        ("- ```\n  a\n  ```", [("item", 0, "•", ""), ("code", 0, "", "a")]),
        ("> 1. ```\n", [("item", 0, "1.", ""), ("code", 0, "", "")]),
        ("> 1. > ```py\n>    > a", [("item", 0, "1.", ""), ("code", 0, "py", "a")]),
        ("1. 23) ~~~\n       a", [("item", 0, "1.", ""), ("item", 1, "23)", ""), ("code", 0, "", "a")]),
        ("    a\n      b", [("code", 0, "", "a\n  b")]),
        (
            "| a | b |\n|-|:-:|\n| `c` | d |\n\ne",
            [("table", 0, "", [["a", "b"], ["c", "d"]]), ("paragraph", 0, "", "e")],
        ),
        ("a | b\n- | -\nc | d", [("table", 0, "", [["a", "b"], ["c", "d"]])]),
        ("a | b\nc | d", [("paragraph", 0, "", "a | b\nc | d")]),
        ("[a](http://b/c)", [("paragraph", 0, "", "a (http://b/c)")]),
        ("<b>a</b> &amp; \\*b\\*", [("paragraph", 0, "", "<b>a</b> &amp; *b*")]),
        ("a `b\nc` d", [("paragraph", 0, "", "a b\nc d")]),
    ],
)
def test_blocks(text, expected):
    assert kinds(text) == expected


@in_one_test(
    ("text", "expected"),
    [
        ("a **b** c", [("strong", "b")]),
        ("*a* _b_", [("emphasis", "a"), ("emphasis", "b")]),
        ("__init__ a_b_c 2*3*4 * a *", []),
        ("**a `*b*` c**", [("strong", "a "), ("code", "*b*"), ("strong", " c")]),
        ("`` `a` `` `**b**`", [("code", "`a`"), ("code", "**b**")]),
        ("**a", []),
        ("**[a](b)**", [("strong", "[a](b)")]),
    ],
)
def test_styles(text, expected):
    assert styles(text) == expected


def test_after_the_most_blocks_the_rest_is_as_it_was_written():
    blocks = read_markdown("# a\n" * MAX_BLOCKS + "# b\n# c")
    assert len(blocks) == MAX_BLOCKS + 1
    assert blocks[-1]["texts"] == [{"kind": "text", "text": "# b\n# c"}]


@given(st.lists(st.sampled_from(MARKS) | st.text(max_size=3), max_size=40).map("".join))
def test_every_text_has_blocks_that_the_terminal_draws_and_loses_no_letter(text):
    blocks = read_markdown(text)
    words = "".join(part["text"] for one in blocks for part in parts_of(one))
    words += "".join(one["mark"] for one in blocks)
    letters = {letter for letter in text if letter.isalnum()}
    assert letters <= set(words) | set("xX")  # the x of a done task
    Console(width=40, file=None, quiet=True).print(draw_blocks(blocks))
