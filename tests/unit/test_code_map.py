"""Where code is, rule by rule. The numbers are sections of CommonMark 0.31.2."""

import sys
from itertools import pairwise

import pytest

from tailhook import _core
from tailhook.patterns.sets import Span, code_spans


def code(markdown):
    """Return the spans by code_spans, as [(kind, text)]."""
    return [(span.kind, markdown[span.start : span.end]) for span in code_spans(markdown)]


def spans(*texts):
    return [("span", text) for text in texts]


RULES = {
    # 2.1 Characters and lines
    "2.1 a CR ends a line, and so does CR LF": ("a\r    b\r\n\r\n    c\r\r    d", [("indented", "    c\r\r    d")]),
    "2.1 a line of spaces and tabs is blank": ("a\n \t \n    b", [("indented", "    b")]),
    "2.1 a no-break space is not a blank": ("a\n\u00a0\n    b", []),
    # 2.2 Tabs
    "2.2 a tab indents code": ("\tfoo", [("indented", "\tfoo")]),
    "2.2 tabs stop at every fourth column": ("  \tfoo", [("indented", "  \tfoo")]),
    "2.2 a list item takes a part of a tab": ("-\t\tfoo", [("indented", "-\t\tfoo")]),
    "2.2 a block quote takes a column of a tab": (">\t\tfoo", [("indented", ">\t\tfoo")]),
    "2.2 what is left of a tab may be too little for code": (">\t foo `a`", spans("`a`")),
    "2.2 a tab continues a list item": ("- a\n\n\tb `c`", spans("`c`")),
    "2.2 tabs in a nested quote count from the line's start": (">> >\t\ta", [("indented", ">> >\t\ta")]),
    # 2.3 Insecure characters
    "2.3 a NUL is a character like any other": ("`\0`\0 <http:\0`>`", spans("`\0`")),
    # 2.4 Backslash escapes
    "2.4 an escaped backtick opens nothing": (r"\`a`b`", spans("`b`")),
    "2.4 an escaped backslash escapes nothing": (r"\\`a`", spans("`a`")),
    "2.4 a backslash does not escape in code": (r"`a\`b`", spans(r"`a\`")),
    "2.4 an escaped bracket is not a bracket": (r"\[a](`b`)", spans("`b`")),
    "2.4 an escaped exclamation mark makes no image": (r"[\![a](b)](`c`)", spans("`c`")),
    "2.4 an escaped angle does not open a tag": (r"\<a b='`'> `c`", spans("`'> `")),
    "2.4 a backslash before a letter is itself": (r"\a`b`", spans("`b`")),
    # 4.1 Thematic breaks
    "4.1 a thematic break ends a paragraph": ("a `b\n***\nc` d", []),
    "4.1 a thematic break is not a list item": ("* * *\n      a", [("indented", "      a")]),
    # 4.2 ATX headings
    "4.2 a heading's content is by itself": ("# a `b\nc` d", []),
    "4.2 seven number signs are a paragraph": ("####### a `b\nc`", spans("`b\nc`")),
    "4.2 a heading needs a blank": ("#a `b\nc`", spans("`b\nc`")),
    "4.2 a heading holds code": ("## `a` ##", spans("`a`")),
    # 4.3 Setext headings
    "4.3 an underline ends the content": ("a `b\n===\nc`", []),
    "4.3 a heading may have many lines": ("a `b\nc` d\n---\n", spans("`b\nc`")),
    "4.3 a lazy line is not an underline": ("> a `b\n===\nc`", spans("`b\n===\nc`")),
    "4.3 an underline under definitions only is text": ("[a]: b\n===\n`c`", spans("`c`")),
    "4.3 a dash line under definitions only is a break": ("[a]: b\n---\n    c", [("indented", "    c")]),
    # 4.4 Indented code blocks
    "4.4 code cannot interrupt a paragraph": ("a\n    b `c`", spans("`c`")),
    "4.4 blank lines between chunks belong to the block": (
        "    a\n\n\n    b\n\n",
        [("indented", "    a\n\n\n    b\n")],
    ),
    "4.4 trailing blank lines do not": ("    a\n  \n\nb", [("indented", "    a\n")]),
    "4.4 three spaces are too few": ("   a `b`", spans("`b`")),
    "4.4 code after a heading needs no blank line": ("# a\n    b", [("indented", "    b")]),
    # 4.5 Fenced code blocks
    "4.5 a fence is closed by one of its length or longer": (
        "````\n```\n`````\n`a`",
        [("fence", "````\n```\n`````\n"), ("span", "`a`")],
    ),
    "4.5 tildes do not close backticks": ("```\n~~~\n```", [("fence", "```\n~~~\n```")]),
    "4.5 an unclosed fence goes to the end": ("```\na\n\n", [("fence", "```\na\n\n")]),
    "4.5 an info string of backticks holds none": ("``` a`b\nc", []),
    "4.5 an info string of tildes may": ("~~~ a`b\nc", [("fence", "~~~ a`b\nc")]),
    "4.5 a closing fence has no info string": ("```\n``` a\n```", [("fence", "```\n``` a\n```")]),
    "4.5 a closing fence may be indented by three": ("```\n   ```\na", [("fence", "```\n   ```\n")]),
    "4.5 and not by four": ("```\n    ```\na", [("fence", "```\n    ```\na")]),
    "4.5 a fence interrupts a paragraph": ("a\n```\nb\n```", [("fence", "```\nb\n```")]),
    "4.5 two backticks are not a fence": ("``\na\n``", spans("``\na\n``")),
    "4.5 a fence in a quote ends with the quote": ("> ```\n> a\nb", [("fence", "> ```\n> a\n")]),
    "4.5 a fence in an item ends with the item": ("- ```\n  a\n\nb", [("fence", "- ```\n  a\n\n")]),
    # 4.6 HTML blocks
    "4.6 kind 1 is raw until any of its end tags": (
        "<pre>\n\n`a`\n</STYLE> b\n`c`",
        [("raw", "<pre>\n\n`a`\n</STYLE> b\n"), ("span", "`c`")],
    ),
    "4.6 kind 1 may end where it starts": (
        "<script>a</script>`b`\n`c`",
        [("raw", "<script>a</script>`b`\n"), ("span", "`c`")],
    ),
    "4.6 kind 1 needs its whole name": ("<prefix `a`", spans("`a`")),
    "4.6 kind 2 is a comment until its end": (
        "<!-- a\n\n`b` --> c\n`d`",
        [("comment", "<!-- a\n\n`b` --> c\n"), ("span", "`d`")],
    ),
    "4.6 kind 3 is neither code nor prose": ("<?a\n\n`b`\n?>\n`c`", spans("`c`")),
    "4.6 kind 4 is neither code nor prose": ("<!a\n\n`b`\n>\n`c`", spans("`c`")),
    "4.6 kind 5 is neither code nor prose": ("<![CDATA[\n\n`b`\n]]>\n`c`", spans("`c`")),
    "4.6 kind 6 ends at a blank line": ("<DIV\n`a`\n\n`b`", spans("`b`")),
    "4.6 kind 6 may be a closing tag": ("</td/>\n`a`", []),
    "4.6 kind 7 is a whole tag on its line": ("<b c='d'>\n`a`\n\n`b`", spans("`b`")),
    "4.6 kind 7 has nothing after the tag": ("<b> c\n`a`", spans("`a`")),
    "4.6 kind 7 cannot interrupt a paragraph": ("a\n<b>\n`c`", spans("`c`")),
    "4.6 kind 6 can": ("a\n<p>\n`c`", []),
    "4.6 an HTML block ends with its container": ("> <!--\n`a`", [("comment", "> <!--\n"), ("span", "`a`")]),
    # 4.7 Link reference definitions
    "4.7 backticks in a definition are not code": ("[a]: `b` '`c`'\n", []),
    "4.7 a definition's title may be on the next line": ("[a]: b\n'`c`'\n`d`", spans("`d`")),
    "4.7 an invalid title leaves a definition": ("[a]: b\n'`c`' d", spans("`c`")),
    "4.7 text after the destination makes it none": ("[a]: b c\n`d` [`e]: f`", spans("`d`", "`e]: f`")),
    "4.7 a definition cannot interrupt a paragraph": ("a\n[b]: `c`", spans("`c`")),
    "4.7 definitions may follow each other": ("[a]: `\n[b]:\n`\n`c`", spans("`c`")),
    "4.7 a definition in a quote counts": ("[a`][b] `c`\n\n> [b]: d", spans("`][b] `")),
    "4.7 a label is not blank": ("[ ]: `a`", spans("`a`")),
    # 4.8 Paragraphs
    "4.8 a span ends with its paragraph": ("a `b\n\nc` d", []),
    # 5.1 Block quotes
    "5.1 code in a quote": (">     a\n> b", [("indented", ">     a\n")]),
    "5.1 a span runs over prefixes": ("> a `b\n> c` d", spans("`b\n> c`")),
    "5.1 a lazy line continues the paragraph": ("> a `b\nc` d", spans("`b\nc`")),
    "5.1 a lazy line continues nothing else": (">     a\n    b", [("indented", ">     a\n"), ("indented", "    b")]),
    "5.1 a lazy line is never code": ("> a\n    b `c`", spans("`c`")),
    "5.1 a blank line ends a quote": ("> a `b\n\nc`", []),
    "5.1 a fence is not lazy": ("> ```\n```", [("fence", "> ```\n"), ("fence", "```")]),
    "5.1 a marker indented by four is not a marker": ("    > a", [("indented", "    > a")]),
    # 5.2 List items
    "5.2 an item's content starts where its text does": ("-   a\n\n        b", [("indented", "        b")]),
    "5.2 five spaces after a marker start code": ("-     a", [("indented", "-     a")]),
    "5.2 content may be indented as far as the marker allows": ("10. a\n\n    b `c`", spans("`c`")),
    "5.2 what is indented less ends the item": ("10. a\n\n   b\n\n    c", [("indented", "    c")]),
    "5.2 an item may start with a blank line": ("-\n      a", [("indented", "      a")]),
    "5.2 and with one only": ("-\n\n      a", [("indented", "      a")]),
    "5.2 text after two blank lines is not content": ("-\n\n  a\n\n    b", [("indented", "    b")]),
    "5.2 an ordered list interrupts a paragraph from 1 only": ("a `b\n2. c`", spans("`b\n2. c`")),
    "5.2 from 1 it does": ("a `b\n1. c`", []),
    "5.2 an empty item cannot interrupt a paragraph": ("a `b\n*\nc`", spans("`b\n*\nc`")),
    "5.2 ten digits are not a marker": ("1234567890. a\n\n      b", [("indented", "      b")]),
    "5.2 nine are": ("123456789. a\n\n           b `c`", spans("`c`")),
    "5.2 a lazy line continues an item's paragraph": ("- a `b\nc`", spans("`b\nc`")),
    "5.2 a line that starts a list ends a lazy paragraph": ("> a `b\n2. c`", []),
    "5.2 a fence in an item": (
        "1. a\n   ```\n   b\n   ```\n   `c`",
        [("fence", "   ```\n   b\n   ```\n"), ("span", "`c`")],
    ),
    # 6.1 Code spans
    "6.1 a run is closed by one as long": ("``a`b`` `c``", spans("``a`b``")),
    "6.1 a run that is not closed is text": ("```a`` `b`", spans("`b`")),
    "6.1 code binds tighter than links": ("[a`](b)`", spans("`](b)`")),
    "6.1 and than emphasis": ("*a`*`", spans("`*`")),
    "6.1 what starts first wins": ("`<a b='`'>`", spans("`<a b='`")),
    # 6.3 Links
    "6.3 backticks in a destination are not code": ("[a](`b) `c`", spans("`c`")),
    "6.3 nor in a pointed one": ("[a](<`b c>) `d`", spans("`d`")),
    "6.3 nor in a title": ("[a](b '`c') `d`", spans("`d`")),
    "6.3 parentheses in a destination balance": ("[a](b(`)c`) `d`", spans("`d`")),
    "6.3 parentheses that do not balance make no link": ("[a](b(`)c`", spans("`)c`")),
    "6.3 a space in a destination makes no link": ("[a](b `c`)", spans("`c`")),
    "6.3 a link's text holds code": ("[`a`](b)", spans("`a`")),
    "6.3 a link holds no link": ("[a [b](c) d](`e`)", spans("`e`")),
    "6.3 an image may hold one": ("![a [b](c) d](`e`)", []),
    "6.3 backticks in the label of a reference are not code": ("[a][`b] `c`\n\n[`B]: d", spans("`c`")),
    "6.3 backticks are code if there is no such label": ("[a][`b] `c`\n", spans("`b] `")),
    "6.3 labels are compared by case folding": ("[[ẞ]](`a)`\n\n[SS]: b", spans("`a)`")),
    "6.3 blanks in labels collapse": ("[[a\n  b]](`c)`\n\n[A B]: d", spans("`c)`")),
    "6.3 prefixes are not part of a label": ("> [[a\n> b]](`c)`\n\n[a b]: d", spans("`c)`")),
    "6.3 a label holds no brackets": ("[[a[b]](`c)`\n\n[b]: d", spans("`c)`")),
    "6.3 a title may run over lines": ("> [a](b '`\n> `') `c`", spans("`c`")),
    # 6.4 Images
    "6.4 a description holds code": ("![`a`](`b`)", spans("`a`")),
    "6.4 an image in a link leaves it one": ("[![a](b)](`c`)", []),
    # 6.5 Autolinks
    "6.5 backticks in an autolink are not code": ("<http:a`b> `c`", spans("`c`")),
    "6.5 nor in a mail address": ("<a`b@c.de> `d`", spans("`d`")),
    "6.5 a scheme has two characters": ("<a:`b> c`", spans("`b> c`")),
    "6.5 a mail address has no underscore after the @": ("<a`b@c_d> e`", spans("`b@c_d> e`")),
    # 6.6 Raw HTML
    "6.6 backticks in a tag are not code": ("a <b c=\"`\" d='`'> `e`", spans("`e`")),
    "6.6 an unquoted value holds none": ("a <b c=`d`>", spans("`d`")),
    "6.6 a tag may run over lines": ("> a <b\n> c='`'\n> > `d`", spans("`d`")),
    "6.6 a closing tag has no attributes": ("a </b c='`'>`", spans("`'>`")),
    "6.6 a comment inside a paragraph": ("a <!-- `b\n--> `c`", [("comment", "<!-- `b\n-->"), ("span", "`c`")]),
    "6.6 the shortest comments": (
        "a <!--> <!---> `b` -->",
        [("comment", "<!-->"), ("comment", "<!--->"), ("span", "`b`")],
    ),
    "6.6 a comment that does not end is text": ("a <!-- `b`", spans("`b`")),
    "6.6 a comment in a heading": ("# a <!-- `b` -->", [("comment", "<!-- `b` -->")]),
    "6.6 an instruction": ("a <?`?> `b`", spans("`b`")),
    "6.6 a declaration": ("a <!b `> `c`", spans("`c`")),
    "6.6 the prefix of a line does not end a declaration": ("> a <!b\n> `c`", spans("`c`")),
    "6.6 a CDATA section": ("a <![CDATA[`]]> `b`", spans("`b`")),
}


@pytest.mark.parametrize(("markdown", "expected"), RULES.values(), ids=RULES)
def test_code_is_found_at_the_places_that_the_standard_defines(markdown, expected):
    assert code(markdown) == expected


def test_offsets_of_a_str_are_code_points_and_of_bytes_are_bytes():
    text = "é😀 `ä` 中\n\n    ß\n`x`"
    assert code_spans(text) == [Span("span", 3, 6), Span("indented", 10, 16), Span("span", 16, 19)]
    assert code_spans(text.encode()) == [Span("span", 7, 11), Span("indented", 17, 24), Span("span", 24, 27)]


def test_lone_surrogates_and_bytes_that_are_not_utf_8_are_read():
    assert code_spans("\ud800`\udfff`") == [Span("span", 1, 4)]
    assert code_spans("[\ud800`][\udfff] `\n\n[\udfff]: x") == [Span("span", 2, 9)]
    assert code_spans(b"\xff`\xc3`\x80") == [Span("span", 1, 4)]
    assert code_spans(b"[[\xff]](`a)`\n\n[\xff]: b") == [Span("span", 6, 10)]


def test_nothing_has_no_code():
    assert code_spans("") == code_spans(b"") == []


@pytest.mark.parametrize("other", [None, 1, bytearray(b"`a`"), ["`a`"]])
def test_what_is_not_a_text_is_a_type_error(other):
    with pytest.raises(TypeError, match="a text is str or bytes, not"):
        code_spans(other)


@pytest.mark.parametrize("cls", [object, list, str, type("Sub", (tuple,), {})])
def test_spans_are_made_of_a_named_tuple_class_only(cls):
    with pytest.raises(TypeError, match="cls must be a NamedTuple class, not"):
        _core.code_spans("`a`", cls)


def test_spans_are_tuples_with_names():
    (span,) = code_spans("`a`")
    assert type(span) is Span
    assert span == ("span", 0, 3)
    assert hash(span) == hash(("span", 0, 3))
    assert (span.kind, span.start, span.end) == ("span", 0, 3)


@pytest.mark.parametrize(("length", "is_label"), [(999, True), (1000, False)])
def test_a_label_has_at_most_999_characters(length, is_label):
    label = "ä" * length
    definition = f"[{label}]: `b`\n"
    assert code(definition) == ([] if is_label else spans("`b`"))


def is_reference(label, definition):
    """Return whether the label is a definition's: then a backtick in it begins no code."""
    text = b"[[x]][%b`] `\n\n[%b`]: d" % (label, definition)
    return not _core.code_spans(text, Span)


def test_labels_of_all_characters_are_compared_as_python_folds_them():
    folded = {chr(one): chr(one).casefold() for one in range(0x80, sys.maxunicode + 1)}
    changed = {one: other for one, other in folded.items() if one != other}
    assert len(changed) > 1400
    assert [one for one, other in changed.items() if not is_reference(one.encode(), other.encode())] == []
    kept = [chr(one) for one in range(0x80, 0x3000) if chr(one).isalpha() and chr(one) == folded[chr(one)]]
    assert [one for one, other in pairwise(kept) if is_reference(one.encode(), other.encode())] == []


@pytest.mark.parametrize(
    ("label", "definition", "is_same"),
    [
        (b"\xff", b"\xff", True),
        (b"\xff", b"\xfe", False),
        (b"\xc3", b"\xc3", True),
        (b"\xc1\x81", b"A", False),
        (b"\xc1\x81", b"\xc1\xa1", False),
        (b"\xed\xa0\x80", b"\xed\xa0\x81", False),
        (b"\xe1\xba", b"\xe1\xba", True),
        (b"\xff\xe1\xba\x9e", b"\xffSs", True),
        (b"\x80" * 5000, b"\x80" * 5000, True),
        (b"\x80" * 5000, b"\x80" * 4999, False),
    ],
)
def test_bytes_of_a_label_that_are_not_utf_8_are_compared_as_they_are(label, definition, is_same):
    assert is_reference(label, definition) is is_same


def test_each_of_many_definitions_is_found_and_no_other():
    labels = [f"{number * 7919 % 5000:04}{'é' * (number % 5)}" for number in range(5000)]
    definitions = "".join(f"\n\n[{label.upper()}`]: d" for label in labels)
    text = "".join(f"[x][{label}`] `\n\n" for label in (*labels, "0", "9999", "ÉÉ")) + definitions
    assert code(text) == spans(*["`] `"] * 3)


@pytest.mark.parametrize(("depth", "is_link"), [(32, True), (33, False)])
def test_parentheses_in_a_destination_nest_32_deep(depth, is_link):
    text = "[a](" + "(" * depth + "`" + ")" * depth + ") `"
    assert (code(text) == []) is is_link


def test_no_memory_for_a_span_is_an_error_and_no_crash():
    limit = pytest.importorskip("_testcapi", reason="CPython's own tests are not installed")
    text, failed = "x" * 300 + " `a`" * 30, 0
    for allocation in range(90):
        limit.set_nomemory(allocation, allocation + 1)
        try:
            code_spans(text)
        except MemoryError:
            failed += 1
        finally:
            limit.remove_mem_hooks()
    assert failed >= 30  # CPython 3.15 allocates less often than 3.11
