"""Front matter: read as it stands, changed in one place only."""

import os

import pytest
from support.cases import in_one_test

from tailhook.stores.atomic import TOO_LARGE
from tailhook.stores.frontmatter import FrontMatter, FrontMatterFile
from tailhook.stores.jsonfile import find_files

PAGE = '---\nactive: true\niteration: 1\nmode: "loop"\n---\n\nThe prompt.\n---\niteration: 5\n'


def test_values_are_read_without_quotes_and_blank_space():
    page = FrontMatter("---\na: 1\nb:   two words  \nc: \"x: y\"\nd: 'it''s'\ne:5\nf : g\n---\n")
    assert [page[key] for key in "abcdef"] == ["1", "two words", "x: y", "it's", "5", "g"]


def test_escapes_in_double_quotes_are_resolved():
    page = FrontMatter('---\nq: "a\\"b\\\\c\\nd\\u00e9\\x41\\q"\n---\n')
    assert page["q"] == 'a"b\\c\ndéA\\q'


def test_a_comment_ends_a_plain_value_and_not_a_quoted_one():
    page = FrontMatter('---\na: 5 # five\nb: "x # y" # z\nc: a#b\n---\n')
    assert [page[key] for key in "abc"] == ["5", "x # y", "a#b"]


def test_a_value_that_goes_on_behind_its_quotes_is_a_plain_one():
    page = FrontMatter('---\na: "x" y\n---\n')
    assert page["a"] == '"x" y'
    assert page.set("a", "5") == "---\na: 5\n---\n"


def test_absent_empty_and_null_values_are_the_default():
    page = FrontMatter("---\na:\nb: null\nc: ~\nd: 'null'\n---\n")
    assert [page.get(key, "?") for key in "abcde"] == ["?", "?", "?", "null", "?"]


def test_the_first_of_several_keys_counts():
    assert FrontMatter("---\na: 1\na: 2\n---\n")["a"] == "1"


def test_the_body_is_what_follows_the_second_delimiter_and_may_hold_more():
    assert FrontMatter(PAGE).body == "The prompt.\n---\niteration: 5"


@pytest.mark.parametrize("text", ["", "---", "--- \na: 1\n---\n", "\n---\na: 1\n---\n", "---\na: 1\n", "x"])
def test_a_text_without_front_matter_is_an_error(text):
    with pytest.raises(ValueError, match="no front matter"):
        FrontMatter(text)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_setting_a_value_changes_that_value_and_no_other_byte(newline):
    text = PAGE.replace("\n", newline)
    assert FrontMatter(text).set("iteration", "2") == text.replace("iteration: 1", "iteration: 2", 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("iteration:1", "iteration:2"),
        ("iteration:   1   # one", "iteration:   2   # one"),
        ("iteration: '1'", "iteration: 2"),
        ("iteration:", "iteration: 2"),
        (" iteration : 1", " iteration : 2"),
    ],
)
def test_a_value_is_set_however_its_line_is_laid_out(before, after):
    assert FrontMatter(f"---\n{before}\nb: 1\n---\n").set("iteration", "2") == f"---\n{after}\nb: 1\n---\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_byte_order_mark_that_an_editor_has_written_stays(newline):
    text = f"\ufeff---{newline}active: true{newline}iteration: 1{newline}---{newline}Go."
    page = FrontMatter(text)
    assert (page.values(), page.body, page.line("iteration")) == ({"active": "true", "iteration": "1"}, "Go.", 3)
    assert page.set("iteration", "2") == text.replace("iteration: 1", "iteration: 2")
    assert page.set("new", "x") == text.replace("active", f"new: x{newline}active")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_absent_key_becomes_the_first(newline):
    text = "---\na: 1\n---\nbody".replace("\n", newline)
    assert FrontMatter(text).set("iteration", "1") == text.replace("---", f"---{newline}iteration: 1", 1)


@in_one_test(
    "before",
    [
        "nested:\n  iteration: 7\n",
        "nested:\n\titeration: 7\n",
        "text: |\n  iteration: 7\n  more\n",
        "text: >-\n    iteration: 7\n",
        'text: "goes\n  iteration: 7"\n',
        "# iteration: 7\n",
        "list:\n  - iteration: 7\n",
        "list:\n- iteration: 7\n",
    ],
)
@in_one_test("newline", ["\n", "\r\n"])
def test_a_line_that_belongs_to_another_key_is_not_a_key(before, newline):
    text = f"---\n{before}iteration: 1\n---\nGo."
    page = FrontMatter(text.replace("\n", newline))
    assert page["iteration"] == "1"
    assert page.set("iteration", "2") == text.replace("iteration: 1", "iteration: 2").replace("\n", newline)


def test_without_a_key_of_its_own_one_is_put_first_whatever_is_nested():
    text = "---\nnested:\n  iteration: 7\n---\nGo."
    assert "iteration" not in FrontMatter(text)
    assert FrontMatter(text).set("iteration", "1") == text.replace("---\n", "---\niteration: 1\n", 1)


def test_keys_may_all_be_indented_alike():
    page = FrontMatter("---\n  active: true\n  iteration: 1\n    more: 5\n---\nGo.")
    assert page.values() == {"active": "true", "iteration": "1"}


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0"])
def test_a_first_key_that_is_indented_hides_no_other_key(blank):
    page = FrontMatter(f"---\n{blank}active: true\nmode: loop\n deeper: 5\niteration: 1\n---\nGo.")
    assert page.values() == {"active": "true", "mode": "loop", "iteration": "1"}


@pytest.mark.parametrize("escape", ["\\UFFFFFFFF", "\\U00110000", "\\xzz", "\\u12", "\\qa"])
def test_an_escape_that_stands_for_no_character_stays_as_it_is_written(escape):
    assert FrontMatter(f'---\ncompletion_promise: "a {escape} b"\n---\nGo.')["completion_promise"] == f"a {escape} b"


def test_a_change_of_a_file_is_seen_whatever_its_time_size_and_inode(tmp_path):
    """Two writes within one tick of the file system's clock differ only in the bytes."""
    path = tmp_path / ".claude" / "x.md"
    path.parent.mkdir()
    path.write_text(PAGE)
    home = FrontMatterFile(str(tmp_path), "x.md")
    assert not home.reload()
    before = path.stat()
    with path.open("r+") as out:
        out.write(PAGE.replace("iteration: 1", "iteration: 2"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert home.reload()
    assert (home.page["iteration"], home.reload()) == ("2", False)
    path.unlink()
    assert home.reload()
    assert (home.gone, home.page, home.reload()) == (True, None, False)


def test_a_state_that_is_replaced_twice_never_gets_the_inode_that_was_read(tmp_path):
    path = tmp_path / "x_triage.json"
    path.write_text('{"phase": "triage", "entries": []}')
    (file,) = find_files(str(tmp_path), [], "_triage.json")
    file.columns("entries", lambda state: ())
    read = path.stat().st_ino
    for number in range(50):
        draft = tmp_path / f"{number}.tmp"
        draft.write_text('{"phase": "triage", "entries": []}')
        draft.rename(path)
        assert path.stat().st_ino != read
    assert file.has_changed()


def test_only_lines_with_a_key_and_a_colon_are_values():
    page = FrontMatter("---\n# iteration: 5\n\nno colon\n: no key\na: 1\n---\nGo.")
    assert page.values() == {"a": "1"}


def test_words_right_behind_the_second_delimiter_belong_to_the_body():
    assert FrontMatter("---\na: 1\n---Go.").body == "Go."


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_line_of_a_key_is_counted_from_1(newline):
    page = FrontMatter(newline.join(("---", "a: 1", "", "b: 2", "---", "Go.")))
    assert [page.line(key) for key in "ab"] == [2, 4]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'it''s # no comment' # a comment", "it's # no comment"),
        ("'x # a'''", "x # a'"),
        ("'a' # a comment", "a"),
        ('"a \\" # b" # a comment', 'a " # b'),
        ("'not closed # a comment", "'not closed"),
        ("'", "'"),
        ("'a\"", "'a\""),
        ("aa", "aa"),
    ],
)
def test_a_quoted_value_ends_at_its_closing_quote(written, value):
    assert FrontMatter(f"---\nkey: {written}\n---\nGo.")["key"] == value


@pytest.mark.parametrize(("escape", "letters"), [("\\x41B", "AB"), ("\\u00e9a", "éa"), ("\\U0001F600A", "\U0001f600A")])
def test_an_escape_has_as_many_digits_as_its_letter_asks_for(escape, letters):
    assert FrontMatter(f'---\nkey: "{escape}"\n---\nGo.')["key"] == letters


def state_file(tmp_path):
    """Return the path of a project's state file."""
    (tmp_path / ".claude").mkdir()
    return tmp_path / ".claude" / "state.md"


def test_a_file_of_more_than_4_mib_is_refused(tmp_path):
    path = state_file(tmp_path)
    path.write_text(PAGE)
    os.truncate(path, 4 << 20)
    assert FrontMatterFile(str(tmp_path), "state.md").page["mode"] == "loop"
    os.truncate(path, (4 << 20) + 1)
    with pytest.raises(OSError, match="larger than 4 MiB") as caught:
        FrontMatterFile(str(tmp_path), "state.md")
    assert caught.value.filename == str(path)


def test_front_matter_of_more_than_16_kib_is_refused_and_the_prompt_may_be_longer(tmp_path):
    path = state_file(tmp_path)
    path.write_text("---\nkey: " + "x" * ((16 << 10) - 5) + "\n---\n" + "y" * (1 << 20))
    assert len(FrontMatterFile(str(tmp_path), "state.md").page["key"]) == (16 << 10) - 5
    path.write_text("---\nkey: " + "x" * ((16 << 10) - 4) + "\n---\n")
    with pytest.raises(OSError, match="the front matter is larger than 16 KiB") as caught:
        FrontMatterFile(str(tmp_path), "state.md")
    assert (caught.value.filename, caught.value.errno) == (str(path), TOO_LARGE)


def test_a_link_in_place_of_the_file_is_an_error_that_names_it(tmp_path):
    path = state_file(tmp_path)
    path.symlink_to("elsewhere")
    with pytest.raises(OSError, match="symbolic link") as caught:
        FrontMatterFile(str(tmp_path), "state.md")
    assert caught.value.filename == str(path)
