"""Pattern sets: each rule of docs/library and of the memory machine's keywords, one by one."""

import copy
import pickle

import pytest
from support.cases import in_one_test

import tailhook.patterns
from tailhook import _core
from tailhook.machines.idle import SIGNALS
from tailhook.patterns.sets import Match, PatternSet, RecordMatch

DONE = "<loop-done>COMPLETE</loop-done>"


def names(patterns, text, **options):
    return [match.name for match in PatternSet(patterns, **options).findall(text)]


def spans(patterns, text, **options):
    return [text[match.start : match.end] for match in PatternSet(patterns, **options).findall(text)]


# ---- what a set is made of


def test_a_name_stands_for_one_pattern_or_several():
    assert names({"yes": ["ja", "oui"], "no": "nein"}, "oui nein ja") == ["yes", "no", "yes"]


def test_a_plain_pattern_is_its_own_name():
    assert names(["ja", "nein"], "nein ja") == ["nein", "ja"]


def test_patterns_may_come_from_a_generator():
    assert names((word for word in ("ja", "nein")), "ja") == ["ja"]


@pytest.mark.parametrize("patterns", [[], {}, {"name": []}, [""], {"name": ""}, ["a", ""]])
def test_an_empty_set_or_pattern_is_refused(patterns):
    with pytest.raises(ValueError, match=r"no patterns|empty"):
        PatternSet(patterns)


@pytest.mark.parametrize("patterns", ["word", b"word", [b"word"], [1], {"a": 1}, {"a": [None]}, {1: "a"}, 7, None])
def test_what_is_not_a_set_of_strings_is_refused(patterns):
    with pytest.raises(TypeError):
        PatternSet(patterns)


def test_a_blank_pattern_is_refused_if_blank_space_has_no_length():
    with pytest.raises(ValueError, match="blank"):
        PatternSet([" \t"], word=True)


def test_a_blank_pattern_is_found_as_it_is_otherwise():
    assert spans([" \t"], "a \tb") == [" \t"]


def test_a_text_is_str_or_bytes():
    with pytest.raises(TypeError, match="bytearray"):
        PatternSet(["a"]).findall(bytearray(b"a"))


def test_a_set_survives_pickling_and_copying():
    patterns = PatternSet({"a": ["x", "y"]}, own_line=True, outside_code=False, ignore_case=True, word=True)
    for twin in (pickle.loads(pickle.dumps(patterns)), copy.copy(patterns), copy.deepcopy(patterns)):
        assert repr(twin) == repr(patterns)
        assert twin.findall("X\ny z") == patterns.findall("X\ny z") != []


# Pickles of PatternSet({"a": ["x", "y"]}, word=True) and of the class, made while tailhook.patterns was one module.
OLD_SET = (
    b"ctailhook.patterns\nrebuilt\n"
    b"((dVa\n(Vx\nVy\nts(dVown_line\nI00\nsVoutside_code\nI01\nsVignore_case\nI00\nsVword\nI01\nstR."
)
OLD_CLASS = b"ctailhook.patterns\nPatternSet\n."


def test_a_set_that_an_older_version_pickled_can_be_loaded():
    assert repr(pickle.loads(OLD_SET)) == repr(PatternSet({"a": ["x", "y"]}, word=True))
    assert pickle.loads(OLD_CLASS) is PatternSet
    assert not hasattr(tailhook.patterns, "by_name")


def test_the_repr_shows_what_a_set_looks_for():
    assert repr(PatternSet({"a": "x"}, word=True)) == (
        "PatternSet({'a': ('x',)}, own_line=False, outside_code=True, ignore_case=False, word=True)"
    )


def test_a_match_takes_the_record_that_holds_it():
    match = Match("done", 1, 2, 3, False).with_record("the record")
    assert isinstance(match, RecordMatch)
    assert match == ("done", 1, 2, 3, False)
    assert match.record == "the record"
    assert pickle.loads(pickle.dumps(match)).record == "the record"


# ---- matches


def test_overlapping_matches_all_count_in_order_of_start_end_and_name():
    found = PatternSet({"z": "he", "s": "she", "h": "hers", "e": "e", "twin": "he"}).findall("ushers")
    assert [(match.name, match.start, match.end) for match in found] == [
        ("s", 1, 4), ("z", 2, 4), ("twin", 2, 4), ("h", 2, 6), ("e", 3, 4)
    ]  # fmt: skip


def test_one_pattern_overlaps_itself():
    assert [match.start for match in PatternSet(["aa"]).findall("aaaa")] == [0, 1, 2]


def test_a_pattern_given_twice_under_one_name_counts_once():
    assert names({"a": ["Word", "word", "word"]}, "word", ignore_case=True) == ["a"]


def test_offsets_count_characters_of_a_str_and_bytes_of_bytes():
    text = "é漢😀 ja"
    assert PatternSet(["ja"]).findall(text) == [("ja", 4, 6, 1, False)]
    assert PatternSet(["ja"]).findall(text.encode()) == [("ja", 10, 12, 1, False)]


def test_a_lone_surrogate_is_one_character():
    assert PatternSet(["ja"]).findall("\ud800ja") == [("ja", 1, 3, 1, False)]
    assert PatternSet(["\udfff"]).findall("a\udfff") == [("\udfff", 1, 2, 1, False)]


def test_bytes_that_are_not_utf8_are_neither_words_nor_blank():
    for junk in (b"\xff", b"\x80", b"\xc3", b"\xe2\x84", b"\xf0\x9f\x98", b"\xed", b"\xc0\xaf", b"\xf5\x80\x80\x80"):
        text = junk + b"ja" + junk + b"Ja ja" + junk
        found = PatternSet(["ja"], word=True, ignore_case=True).findall(text)
        assert [text[match.start : match.end] for match in found] == [b"ja", b"Ja", b"ja"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_count_from_one_and_end_at_lf_crlf_and_cr(end):
    text = end.join(["ja", "", "x ja"] + [""] * 600 + ["ja"])
    assert [match.line for match in PatternSet(["ja"]).findall(text)] == [1, 3, 604]


def test_a_match_of_the_line_ends_themselves_is_on_the_line_it_ends():
    assert [match.line for match in PatternSet(["\n"]).findall("a\r\nb\n")] == [1, 2]


def test_no_text_holds_no_match():
    assert PatternSet(["a"]).findall("") == PatternSet(["a"]).findall(b"") == []
    assert PatternSet(["a"]).find_last("") is None


def test_the_last_match_is_the_last_of_all():
    assert PatternSet(["a", "b"]).find_last("b a b a b").start == 8


# ---- ignore_case


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("Todo", "tODO"), ("kiss", "\u212aI\u017fs"), ("KISS", "k\u0130sS"), ("is", "\u0131S"),
        ("\u017f\u0130\u212a", "sik"), ("été", "éTé"), ("i" * 40, "\u0130\u0131iI" * 10), ("s", "\u017f"),
    ],
)  # fmt: skip
def test_ascii_letters_and_their_four_odd_forms_are_alike(pattern, text):
    assert spans([pattern], f"<{text}>", ignore_case=True) == [text]
    assert spans([pattern], f"<{text}>", ignore_case=True, word=True) == [text]


@pytest.mark.parametrize(
    ("pattern", "text"), [("é", "É"), ("ß", "SS"), ("ж", "Ж"), ("@", "`"), ("[", "{"), ("a", "\x01"), ("j", "ĵ")]
)
def test_other_letters_have_one_case(pattern, text):
    assert spans([pattern], text, ignore_case=True) == []


def test_case_counts_unless_it_is_ignored():
    assert spans(["Word"], "word WORD Word") == ["Word"]


# ---- word


@in_one_test("beside", ["a", "Z", "_", "7", "é", "²", "½", "Ⅷ", "٣", "漢", "ª", "\u0130", "\U0001d7d8"])
def test_a_word_ends_where_no_letter_digit_or_underscore_follows(beside):
    for text in (f"limit{beside}", f"{beside}limit", f"{beside}limit{beside}"):
        assert spans(["limit"], text, word=True) == []


@pytest.mark.parametrize(
    "beside", ["", " ", "-", ".", "\u0301", "\u0345", "\u200b", "😀", "\ufffd", chr(0xD83D), "\xa0"]
)
def test_marks_and_signs_are_not_part_of_a_word(beside):
    for text in (f"limit{beside}", f"{beside}limit", f"{beside}limit{beside}"):
        assert spans(["limit"], text, word=True) == ["limit"]


@pytest.mark.parametrize(
    "blank", [" ", "\t", "\n", "\r\n", "\x1c", "\x85", "\xa0", "\u1680", "\u2028", "\u3000", " \t "]
)
def test_blank_space_in_a_phrase_is_any_run_of_blank_space(blank):
    assert spans(["api limit"], f"api{blank}limit", word=True) == [f"api{blank}limit"]
    assert spans([f"api{blank}limit"], "api limit", word=True) == ["api limit"]


def test_a_zero_width_space_is_not_blank():
    assert spans(["api limit"], "api\u200blimit", word=True) == []


def test_blank_space_counts_as_it_is_without_word():
    assert spans(["api limit"], "api  limit api limit") == ["api limit"]


def test_a_longer_phrase_that_fails_hides_no_shorter_one():
    assert names(["api limit", "limit"], "xapi limit", word=True) == ["limit"]


def test_an_end_that_is_not_a_word_wants_a_word_beside_it():
    assert spans(["-x-"], "a-x-b", word=True) == ["-x-"]
    assert spans(["-x-"], " -x- ", word=True) == []
    assert spans([" x"], "a  x", word=True) == ["  x"]
    assert spans(["x "], "x \t a", word=True) == ["x \t "]
    assert spans(["x "], "x .", word=True) == []


# ---- own_line


@in_one_test("before", ["", " ", "\t", "> ", ">", "- ", "* ", "+ ", "1. ", "12) ", "> - 1.\t* ", " >>  - ", "\xa0"])
@in_one_test("behind", ["", " ", "\t \xa0", "\u3000"])
@in_one_test("end", ["", "\n", "\r\n", "\r"])
def test_blank_space_and_markers_leave_a_match_alone_on_its_line(before, behind, end):
    text = f"prose{end}" * bool(end) + before + DONE + behind + end
    assert len(PatternSet([DONE], own_line=True, outside_code=False).findall(text)) == 1


@in_one_test("before", ["# ", "x ", "-", "1.", ". ", "1 ", "1234567890. ", "- x ", "## ", "`", "| ", "[ ] ", "-\xa0"])
def test_words_and_headings_before_a_match_do_not(before):
    assert names([DONE], before + DONE, own_line=True, outside_code=False) == []


@pytest.mark.parametrize("behind", [".", " x", " -", "`", " #", DONE])
def test_anything_behind_a_match_does_not(behind):
    assert names([DONE], DONE + behind, own_line=True, outside_code=False) == []


def test_a_match_over_lines_is_alone_if_both_its_ends_are():
    patterns = PatternSet(["api limit"], own_line=True, word=True)
    assert len(patterns.findall("- api\n limit \n")) == 1
    assert patterns.findall("- api\n limit x\n") == patterns.findall("x api\n limit\n") == []


def test_a_match_inside_a_marker_is_not_alone():
    assert names(["."], "1. x\n.", own_line=True) == ["."]


# ---- outside_code


def test_a_match_that_stands_partly_in_code_is_in_code():
    text = "`a` b a"
    assert spans(["a` b"], text) == []
    assert PatternSet(["a` b", "a"], outside_code=False).findall(text) == [
        ("a", 1, 2, 1, True), ("a` b", 1, 5, 1, True), ("a", 6, 7, 1, False)
    ]  # fmt: skip
    assert PatternSet(["a"]).findall(text) == [("a", 6, 7, 1, False)]


# ---- the idle signals


def test_the_signals_of_the_idle_machine_are_found_in_the_order_of_the_text():
    written = list(dict.fromkeys(signal for mode in SIGNALS.values() for signal in mode))
    before = ["", "- ", "> ", "1. ", "  ", "* > "]
    text = "\r\n".join(f"{mark}{signal} " for mark, signal in zip(before, written, strict=True))
    assert _core.signals(text) == written
    assert _core.signals(text.encode()) == written


@pytest.mark.parametrize(
    "text", ["", f"# {DONE}", f"`{DONE}`", f"Say {DONE}", f"{DONE}.", DONE.lower(), f"{DONE} {DONE}"]
)
def test_text_that_only_mentions_a_signal_has_no_signal(text):
    assert _core.signals(text) == []


def test_a_signal_beside_a_lone_surrogate_is_found():
    assert _core.signals(f"\ud800\n{DONE}\n") == [DONE]
