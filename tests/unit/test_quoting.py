"""Quotes of a command or a line: they have no secret, and nothing beyond a bound is read."""

import tracemalloc

import pytest
from support.cases import in_one_test

from tailhook.hook.answer import plain, plain_lines
from tailhook.machines import clip_field as shown_in_a_prompt
from tailhook.machines.memory import quote_line
from tailhook.machines.quoting import MAX_EXAMINED_CHARS, plain_text, plain_words

KEY = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def shown(line):
    return plain_words(line, 200)


# ---- letters -----------------------------------------------------------------

# The first and the last letter of each printable range of Unicode without a visible form.
INVISIBLE = [(0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x3164, 0x3164)]
INVISIBLE += [(0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)]


@pytest.mark.parametrize(("first", "last"), INVISIBLE)
def test_memory_leaves_out_letters_that_show_nothing_and_keeps_their_neighbours(first, last):
    assert quote_line(f"a{chr(first)}b{chr(last)}c") == "abc"
    for neighbour in filter(str.isprintable, (chr(first - 1), chr(last + 1))):
        assert quote_line(f"a{neighbour}b") == f"a{neighbour}b"


def test_a_letter_that_cannot_be_printed_is_left_out_and_half_a_pair_is_replaced():
    assert shown("caf\u00e9 a\u200bb `x` \ud800 \udfff") == "caf\u00e9 ab `x` \ufffd \ufffd"


# ---- credentials -------------------------------------------------------------


HEADERS = {
    "curl -H 'Authorization: Basic dXNlcjpwdw==' a.org": "curl -H 'Authorization: Basic [secret] a.org",
    "curl -H 'authorization: token abc' a.org": "curl -H 'authorization: token [secret] a.org",
    "Proxy-Authorization: Negotiate abc": "Proxy-Authorization: Negotiate [secret]",
    "curl -H Authorization:Basic\\ abc a.org": "curl -H Authorization:Basic\\ [secret] a.org",
    '{"Authorization": "Basic abc"}': '{"Authorization": "Basic [secret]',
    '{"Authorization":"Basic abc"} x': 'Authorization":[secret] x',
    'headers["Authorization"] = "Basic abc"': 'headers["Authorization"] = "Basic [secret]',
    "http a.org Authorization:abc1": "http a.org Authorization:[secret]",
    "curl -H 'Authorization: abc' a.org": "curl -H 'Authorization: [secret] a.org",
    "Authorization: abc1 a.org": "Authorization: [secret] [secret]",
    "curl -H Authorization:\\ Basic\\ abcd= a.org": "curl -H Authorization:\\ Basic\\ [secret] a.org",
}
JOINED = {
    "curl --user=admin:hunter2 a.org": "curl --user=admin:[secret] a.org",
    "curl --proxy-user='admin:hunter 2' a.org": "curl --proxy-user='admin:[secret] a.org",
    "curl -u \\\n admin:hunter2 a.org": "curl -u admin:[secret] a.org",
    "mysql --password \\\n hunter2": "mysql --password [secret]",
    "curl -uadmin:hunter2 a.org": "curl -uadmin:[secret] a.org",
    "curl -u 'admin:hunter 2' a.org": "curl -u admin:[secret] a.org",
    "curl -u admin:hunter2:token:x a.org": "curl -u admin:[secret] a.org",
    "curl https://x/?api_key=abc": "curl https://x/?api_key=[secret]",
    "curl 'https://x/?a=b&access_token=abc&c=d' e": "curl https://x/?a=b&access_token=[secret] e",
    f"curl https://x/?key={KEY}&a=b": "curl https://x/?key=[secret]",
    "curl https://x:8080/?password=abc": "curl https://x:8080/?password=[secret]",
    "curl -d 'password=hunter 2' a": "curl -d password=[secret] a",
    "curl -d 'user=me&password=hunter2' a": "curl -d user=me&password=[secret] a",
    "bash -c 'TOKEN=$TOKEN make test && make deploy'": "bash -c TOKEN=[secret] make test && make deploy'",
    'echo "the user\'s_token=abc" && make': "echo \"the user's_token=[secret] && make",
    "echo 12/aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5h": "echo [secret]",
    "docker build --build-arg=NPM_TOKEN=abc .": "docker build --build-arg=NPM_TOKEN=[secret] .",
    'curl -d {"user":"me","password":"hunter2"}': 'curl -d user":"me","password":[secret]',
    'curl -d {"user":"me","password": "hunter2"}': 'curl -d {"user":"me","password": [secret]',
}


@pytest.mark.parametrize("command", HEADERS)
def test_what_an_authorization_header_holds_is_masked_whatever_its_scheme(command):
    assert shown(command) == HEADERS[command]


@in_one_test("option", ["-u", "-su", "-U", "--user", "--proxy-user"])
@in_one_test("quote", ["", '"', "'"])
def test_the_password_after_a_user_is_masked_and_the_user_is_not(option, quote):
    assert shown(f"curl {option} {quote}admin:hunter2{quote} a.org") == f"curl {option} admin:[secret] a.org"


@in_one_test("command", JOINED)
def test_a_secret_is_found_behind_any_sign_of_a_word(command):
    assert shown(command) == JOINED[command]


@pytest.mark.parametrize(
    "url",
    [
        "https://tok3n@github.com/a/b",
        "https://me:pw@github.com/a/b",
        "https://me:p/w@github.com",
        "git+https://tok3n@github.com",
        "https://tok3n@x.org/?password=abc",
        "https://x.org,https://tok3n@x.org",
        "ssh://me:pw@x.org",
    ],
)
def test_a_url_with_a_user_is_masked_whole(url):
    assert shown(f"git clone {url} here") == "git clone [secret] here"


@in_one_test(
    "command",
    [
        "sudo -u deploy make",
        "docker run -u 1000:1000 img",
        "docker run --user 1000:1000 img",
        "docker run --user=$(id -u):$(id -g) img",
        "ls -lu a:b",
        "cargo test auth::token::refresh",
        "pytest tests/test_auth.py::TestToken::test_refresh",
        "curl http://token-service:8080/health",
        "git push -u origin HEAD:main",
        "date -u +%H:%M:%S",
        "sqlmap -u https://example.org/a",
        "systemctl --user restart unit",
        "python -u main.py",
        "git clone ssh://git@example.org/a",
        "git clone git@example.org:a/b",
        "npm view https://registry.example.org/@scope/name",
        "curl https://example.org?mail=me@example.org",
        "curl http://localhost:8080/api/v1/documents/of/2026/11/21",
        "a basic test of the authorization works",
        "see https://example.org/a?page=2&of=3#part",
    ],
)
def test_what_is_not_a_secret_is_shown_in_a_command(command):
    assert shown(command) == command


@pytest.mark.parametrize("command", ["`cat token.txt`", "echo `date` > log", "git log --format=`%H`"])
def test_a_command_keeps_its_backticks(command):
    assert shown(command) == command


@pytest.mark.parametrize("text", ["`sk-proj-%s`", "`password: hunter2`", "run `mysql -phunter2` now", "`--token %s`"])
def test_a_secret_in_backticks_is_masked(text):
    found = plain_text(text.replace("%s", KEY), 200)
    assert "[secret]" in found
    assert "hunter" not in found
    assert KEY[:8] not in found


# ---- ordinary text, and what takes effect ------------------------------------

ORDINARY = {
    "French": "Attention\u00a0: 3\u202f000\u00a0€",
    "Japanese": "全角\u3000空白",
    "Persian": "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Devanagari": "क्\u200dष",
    "emoji": "👩\u200d👩\u200d👧 ❤\ufe0f",
    "typography": "a\u2009b\u2003c",
}


@pytest.mark.parametrize("name", ORDINARY)
def test_blank_space_and_joiners_of_ordinary_text_stay(name):
    text = ORDINARY[name]
    assert plain(text) == plain_text(text, 200) == shown_in_a_prompt(text) == text


@pytest.mark.parametrize("name", ["Persian", "Devanagari", "emoji"])
def test_joiners_stay_in_a_command(name):
    assert shown(f"git commit -m '{ORDINARY[name]}'") == f"git commit -m '{ORDINARY[name]}'"


def test_a_tab_stays_in_a_text_and_is_a_blank_on_one_line():
    assert plain_text("if x:\n\treturn\r\n", 200) == "if x:\n\treturn\n"
    assert plain_lines("a\tb\nc") == "a b\nc"
    assert shown_in_a_prompt("a\tb") == "a?b"


@in_one_test(
    "letter",
    "\x00\x07\x08\x0b\x0c\r\x1b\x7f\x85\x9b\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\ufeff\ufff9"
    "\U000e0041\ue000\ud800",
)
def test_what_takes_effect_or_hides_is_replaced(letter):
    assert plain_text(f"a{letter}b", 200) == "a\ufffdb"
    assert plain(f"a{letter}b") == f"a{ascii(letter)[1:-1]}b"
    assert shown_in_a_prompt(f"a{letter}b") == "a?b"
    assert letter not in shown(f"a{letter}b")


def test_a_long_text_is_masked_before_it_is_cut():
    for length in range(180, 201):
        assert "hunter" not in plain_text(f"{'x' * length} password=hunter2 password=hunter2", 200)
    block = "-----BEGIN RSA PRIVATE KEY-----\n" + ("MIIE3f78" * 8 + "\n") * 2_000
    assert plain_text(f"a {block} b", 200) == "a [secret]\n…"
    end = "-----END RSA PRIVATE KEY----- "
    login = "https://hunter2:hunter2hunter2@x.org"
    for inside in range(len(login) + 1):  # so much of the login is examined, and would be shown
        text = block[: 200 + MAX_EXAMINED_CHARS - len(end) - inside] + end
        shown_text = plain_text(f"{text}{login} b", 200).removesuffix("\n…")
        assert shown_text in ("[secret]", "[secret] ", "[secret] [secret]"), inside
    whole = block[: 200 + MAX_EXAMINED_CHARS - len(end) - len(login)] + end
    assert plain_text(whole + "x" * len(login), 200) == f"[secret] {'x' * len(login)}"  # nothing is cut
    long = "3f78" * MAX_EXAMINED_CHARS
    assert plain_text(f"key {long}", 200) == "key [secret]\n…"  # so much of it is there that it is recognised


def test_a_text_of_one_long_word_is_shown_to_its_limit():
    assert plain_text("x" * 3 * MAX_EXAMINED_CHARS, 200) == "x" * 198 + "\n…"


@pytest.mark.parametrize("between", [" && ", "\n", " " * 2 * MAX_EXAMINED_CHARS, "\n" * 2 * MAX_EXAMINED_CHARS])
@pytest.mark.parametrize("length", [1, 100, 196, 197, 198, 199, 200, 300])
def test_a_command_that_is_cut_ends_with_an_ellipsis(length, between):
    command = "x" * length
    whole = f"{command}{between}rm -r /"
    for found in (shown(whole), plain_text(whole, 200)):
        assert "rm -r /" in found or found.endswith("…")
        assert len(found) <= 200
    assert shown(shown(whole)) == shown(whole)
    if length <= 200:
        assert shown(command) == plain_text(command, 200) == command


def test_of_several_lines_the_last_ones_word_may_be_cut():
    blank = " " * MAX_EXAMINED_CHARS
    for inside in range(2, 38):
        line = f"one\n{blank}"[: MAX_EXAMINED_CHARS - inside - 10] + "three four"
        assert shown(f"{line} https://hunter2:hunter2hunter2@x.org b") == "one three four…"
        line = f"one two\n{blank}"[: MAX_EXAMINED_CHARS - inside] + "https://hunter2:hunter2hunter2@x.org b"
        assert "hunter" not in shown(line)
        assert shown(line).startswith("one two")


# ---- what is not looked at ---------------------------------------------------

OPEN_QUOTE = "deploy --password 'abc "


@in_one_test(
    "line",
    ["make test " * 30, "x" * (MAX_EXAMINED_CHARS + 1), "é" * (MAX_EXAMINED_CHARS + 1), OPEN_QUOTE],
    ids=["words", "long", "wide", "quote"],
)
@in_one_test("behind", [" word" * 1_000_000, "x" * 4_000_000, "é " * 1_000_000], ids=["words", "long", "wide"])
def test_what_lies_behind_what_is_looked_at_costs_and_changes_nothing(line, behind):
    whole = line + behind
    tracemalloc.start()
    try:
        found = shown(whole)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.rstrip("…") == shown(line).rstrip("…")
    assert peak < 1 << 18


@in_one_test(
    "secret",
    [
        KEY,
        f"a={KEY}",
        "https://me:hunter2@x.org",
        "https://hunter2hunter2@x.org",
        "password=hunter2",
        "password='hunter2 hunter2' ",
        "--password hunter2",
        "Authorization: Basic hunter2 ",
    ],
)
@in_one_test("filler", ["\u200b", " ", "\u200b "])
def test_a_secret_across_the_end_of_what_is_looked_at_is_not_shown_in_part(secret, filler):
    blanks = (filler * MAX_EXAMINED_CHARS)[:MAX_EXAMINED_CHARS]
    for inside in range(len(secret) + 1):
        found = shown("a " + blanks[2 + inside :] + secret + " b")
        assert "hunter" not in found
        assert KEY[:3] not in found


@pytest.mark.parametrize(
    "secret",
    [
        KEY[:8] + "1a" * MAX_EXAMINED_CHARS,
        "3f78" * MAX_EXAMINED_CHARS,
        "me:" + "x" * MAX_EXAMINED_CHARS,
        "https://" + "x" * MAX_EXAMINED_CHARS,
    ],
    ids=["key", "digits", "login", "url"],
)
def test_a_secret_that_is_longer_than_what_is_looked_at_is_not_shown_in_part(secret):
    found = shown(f"curl -u {secret}@x.org b")
    assert found.endswith("[secret]…")
    assert secret[8:12] not in found
