"""Secrets in commands, errors and prose: masked wherever they stand; ordinary text is left as it is."""

import string
from random import Random

import pytest
from support.cases import in_one_test
from support.opcodes import count_opcodes
from support.usual_secrets import HOSTILE, MIXED, PASSWORD, PEM, SECRETS, is_shown, written

from tailhook._core import find_keys
from tailhook.machines import passwords
from tailhook.machines.key_looks import is_mixed, is_uuid
from tailhook.machines.quoting import MAX_EXAMINED_CHARS, plain_words
from tailhook.machines.secret_rules import KEY_BEGINNINGS
from tailhook.machines.secrets import COMMANDS, MASK, mask

CONTEXTS = {
    "command": "{}",
    "error": "Error: Command failed: {}\n    at Process.exit (app.js:12)\nexit code 1",
    "prose": "I ran this:\n\n    {}\n\nIt worked, because the *limit* was raised.",
    "list": "- first: {}\n- second: nothing",
}


@in_one_test("context", CONTEXTS)
@in_one_test("name", SECRETS)
def test_a_usual_secret_is_masked_wherever_it_stands(name, context):
    shown = mask(CONTEXTS[context].replace("{}", written(name)[1]))
    assert MASK in shown
    assert not is_shown(name, shown), shown
    assert mask(shown) == shown, "masked twice, by the hook and by the daemon"


@in_one_test("name", SECRETS)
def test_a_usual_secret_is_masked_in_one_line(name):
    shown = plain_words(written(name)[1], 1000)
    assert MASK in shown
    assert not is_shown(name, shown), shown
    assert plain_words(shown, 1000) == mask(shown) == shown, "masked twice, by the hook and by the daemon"


@in_one_test("context", ["error", "prose", "list"])
@in_one_test("name", SECRETS)
def test_what_stands_around_a_secret_stays(name, context):
    before, _, after = CONTEXTS[context].partition("{}")
    shown = mask(CONTEXTS[context].replace("{}", written(name)[1]))
    assert shown.startswith(before)
    assert shown.endswith(after[after.index("\n") :]) or "PEM" in name


@in_one_test("beginning", KEY_BEGINNINGS)
def test_every_known_beginning_of_a_key_is_masked_whole_or_cut_short(beginning):
    least, _ = KEY_BEGINNINGS[beginning]
    for length in (least, least + 20, max(8, min(least // 2, 16))):
        key = beginning + MIXED[:length]
        for way in ("the key {} was leaked", "x={}", '"{}"', "https://example.org/a/{}", "(token:{})"):
            shown = mask(way.replace("{}", key))
            assert key[len(beginning) :] not in shown, shown
            assert MASK in shown


ORDINARY = [
    "the token expired because the clock was wrong",
    "npm_config_registry and npm_config_cache_folder_name are set",
    "pk-fields of a table, sk-prefix of SG., key-value-pairs-of-2024",
    "path/to/some/really/long/folder_name/with/file_2_of_3.test.tsx",
    "patient-record-2024-01-01-of-a-very-long-name-that-is-a-file.json",
    "mkdir -p build && cp -p a b && ssh -p 2222 host",
    "docker run -p 8080:80 image && docker build -t x .",
    "mysql -u root -p shop < dump.sql",
    "echo hello | grep -S h",
    "echo $DOCKER_TOKEN | docker login -u me --password-stdin",
    "htpasswd -c .htpasswd me",
    "unzip -p x.zip && zip -r x.zip src",
    "see https://hooks.slack.com/ and https://discord.com/api/webhooks/",
    "const cookie = parse(header); // no value here",
    "2026-11-21T10:00:00.000Z main INFO 00000000-0000-0000-0000-000000000000 started",
    "sha256 of commit 8b3c9b4, tests::auth::token::refresh",
    "Error: ENOENT: no such file or directory, open '/home/me/project/src/index.ts'",
    "TypeError: Cannot read properties of undefined (reading 'map') at render (/app/src/List.tsx:42:17)",
    "| a | table | of | words |",
    "```python\ndef f(x: int) -> str:\n\treturn str(x)\n```",
    "pass: 12, fail: 0, skip: 3",
    "signature: f(a, b) -> c",
    "the basic idea: use bearer of news",
    "\u00a0no-break, \u3000wide, \u200dZWJ \U0001f469\u200d\U0001f4bb and\ttabs  stay   here ",
    "",
    "\n\n",
    "x" * 3000,
    "5f " * 100,
]


@in_one_test("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text):
    assert mask(text) == text
    assert mask(f"before\n{text}\n\tafter") == f"before\n{text}\n\tafter"


def test_the_commands_that_load_the_rules_are_those_that_have_one():
    assert {"echo", "printf", "htpasswd", "chpasswd", *passwords.JOINED, *passwords.OPTIONS, *passwords.OPERANDS} | set(
        passwords.READS_PASSWORD_WITH
    ) | passwords.LOGINS_WITH_P | passwords.SAMBA == set(COMMANDS.split())


def test_each_line_is_a_command_of_its_own_and_a_backslash_joins_lines():
    assert mask("htpasswd -b f me pw1\nmake all") == f"htpasswd -b f me {MASK}\nmake all"
    assert plain_words("htpasswd -b f me pw1\nmake all", 200) == f"htpasswd -b f me {MASK} make all"
    assert mask("htpasswd -b f \\\n  me \\\n  pw1\nmake") == f"htpasswd -b f \\\n  me \\\n  {MASK}\nmake"
    assert plain_words("htpasswd -b f \\\n  me \\\n  pw1\nmake", 200) == f"htpasswd -b f me {MASK} make"
    assert mask("mysql \\\n -phunter2 \\\n shop") == f"mysql \\\n -p{MASK} \\\n shop"
    assert mask("sshpass -p \\\n hunter2 ssh a") == f"sshpass -p \\\n {MASK} ssh a"
    assert plain_words("mysql \\\n -phunter2 \\\n shop", 200) == f"mysql -p{MASK} shop"
    assert mask("a \\\nb \\") == "a \\\nb \\"


def test_a_secret_of_several_words_ends_with_its_line():
    assert mask("--password 'open\nThe next line stays.") == f"--password {MASK}\nThe next line stays."


def test_an_option_at_the_end_of_a_line_that_goes_on_is_remembered():
    assert mask("mysql --password \\\n  hunter2 shop") == f"mysql --password \\\n  {MASK} shop"
    assert mask("Password:\nhunter2") == "Password:\nhunter2"


def test_a_key_may_end_without_its_label():
    assert mask(f"-----BEGIN KEY-----\n{'MII3' * 16}\n-----END----- b") == f"{MASK} b"


def test_several_pem_blocks_are_masked_and_what_is_between_them_is_not():
    assert mask(f"a {PEM} b {PEM}\nc") == f"a {MASK} b {MASK}\nc"


NO_SECRETS = [
    "gh api repos/me/dotfiles/pulls/2351/comments && gh run view --log actions/jobs/93712966596/logs",
    "git switch feature/JIRA-12345-add-login-form-for-users",
    "src/components/2024/q1/report_page_v2 my_function_name_with_numbers_1_2_3_4 x86_64-unknown-linux-gnu-20240101",
    "git show 4e1243bd22c66e76c2ba9eddc1f91394e57f9f83",
    "actions/checkout@v5 (SHA:08c6903cd8c0fde910a37f88322edcfb5dd907a8)",
    "image@sha256:06edada1bd860d28f479170daf8378d4054464f8b05ed1e17735aaeb6a7a7d9e",
    "integrity sha512-z7XUyTAbFr+k9AVtDaMaGqYIlFtkYVhcIAHnvyRKXDz2tWzYBSgT5kVbTfTMQbSbyaLpP1BJwPXaKRdWbLzjQw==",
    "toolu_01A09q90qw90lq917835lq9 and msg_01XFDUDYJgAACzvnptvVoYEL",
    "HOME='/home/runner/work/_temp/81cae66d-1a7b-4990-83c5-b3d6bc236756'",
    "ruff check src/secrets.py:12:5 src/token.py:12:5: E501 line too long",
    "src/auth/password.ts:88:13 - error TS2304: at Token.next (/src/token.js:88:13)",
    "max_tokens: 4096, input_tokens=1234 TOKEN_COUNT=12 claude --max-tokens 4096",
    "tokenizer: tiktoken",
    "const secretary = people[0]",
    "def login(user: str, password: str, token: str) -> Session:",
    "token: str | None = None",
    "token = next(stream)",
    "The password: is not needed any more",
    "reset_password='' was wrong",
    "SyntaxError: Unexpected token: punc (,)",
    "ERROR unexpected token = in line 3",
    "open http://localhost:5173/@vite/client or http://registry:4873/@scope/pkg",
    "docker run -u node:node image && cp -u a:b c && git push -u origin:main",
    "Look for lines with -----BEGIN in it.",
    "grep -n '-----BEGIN' *.pem && make deploy",
    "grep -n -- '-----BEGIN RSA PRIVATE KEY-----' *.pem && make",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "docker login ghcr.io\nmkdir -p build/out",
    "mysql shop < x.sql\nssh -p2222 host",
    "redis-cli ping\nls -a src",
    "authorization: role-based instead of ACLs",
    "PASS: TestOne\npass=12 fail=0",
    "--token-file /run/secrets/x PASSWORD_FILE=/run/secrets/db docker compose up",
    "a bypass: the compass: x",
]


@in_one_test("text", NO_SECRETS)
def test_paths_hashes_counts_and_prose_are_not_masked(text):
    shown = mask(text)
    assert shown == text or "PRIVATE KEY" in text
    assert shown.endswith(text[-6:])


OTHER_WAYS = [
    "'password' => '{}'", 'password := "{}"', "PASSWORD ?= {}", "if password == '{}'", "PASSWORD='{}' psql",
    "PGPASSWORD=$'{}' psql", "PASS={}", "DB_PASS={}", "dbpass={}", "SSHPASS={}", "pw={}", "pw: {}",
    "npm config set _auth={}", "sshpass -p{} ssh a", "redis-cli -a{}", "openssl enc -k {}", "deploy -token {}",
    "curl -b 'sid={}' a.org", "curl --cookie sid={} a.org", "docker login --password-stdin <<< {}",
    "sudo -S ls <<<'{}'", "sudo -S ls <<< {}", "echo {}|sudo -S ls", "<password>{}</password>",
    "machine a.org login me password {}", "ALTER USER me WITH PASSWORD '{}';", "CREATE USER me IDENTIFIED BY '{}'",
    "git clone //me:{}@a.org/x", "https://a.org/#id_token={}", "aws configure set aws_secret_access_key {}",
    '{{"password": "open\\" {}"}}',
]  # fmt: skip


def test_a_key_of_exactly_its_length_needs_no_digit():
    key = "AKIACLJSWWRFRQQOTNCZ"  # 4 of 100 random ones have none
    assert mask(f"id {key} and {key}") == "id [secret] and [secret]"
    for word in (f"{key}S", key[:-1], "ASIAPACIFICHEADQUARTERS", "ASIA"):
        assert mask(word) == word


@in_one_test("way", OTHER_WAYS)
def test_a_password_is_masked_however_it_is_given(way):
    assert PASSWORD not in mask(way.replace("{{", "{").replace("}}", "}").replace("{}", PASSWORD))


@in_one_test("before", ["", " ", "\u201c", "*", "\u2026", "%20", "$", "key.", "\\n", "(", "é", "x="])
def test_a_key_begins_behind_any_sign_and_behind_an_escape(before):
    key = f"ghp_{MIXED[:36]}"
    assert key not in mask(f"a {before}{key} b")
    assert find_keys(f"my-{key} my_{key} x{key}") == []


@pytest.mark.parametrize("length", [32, 40, 64])
@pytest.mark.parametrize("letters", ["", "+/", "-_"])
def test_of_random_keys_few_are_shown(length, letters):
    """A key without a name or a known beginning is recognised by its letters. The missed ones are counted."""
    random = Random(length)
    letters = string.ascii_letters + string.digits + letters
    keys = ["".join(random.choices(letters, k=length)) for _ in range(2000)]
    assert sum(MASK not in mask(f"run {key} now") for key in keys) <= 0.02 * len(keys)
    assert all(MASK in mask(f"API_KEY={key}") for key in keys)


def test_a_uuid_is_not_a_key_and_hides_none():
    uuid, key = "81cae66d-1a7b-4990-83c5-b3d6bc236756", "k1L2m3N4" * 4
    for text in (uuid, f"/tmp/{uuid}/x", f"a{uuid}b", f"{uuid}/{uuid}"):
        assert mask(f"rm {text}") == f"rm {text}"
    for text in (f"{uuid}/{key}", f"{key}/{uuid}", f"{key}{uuid}", f"{uuid}{key}", uuid.replace("8", "z", 1)):
        assert mask(f"rm {text}") == f"rm {MASK}"


@pytest.mark.parametrize("length", [32, 40, 56, 64, 96, 128])
def test_a_digest_is_a_key_only_by_its_name(length):
    digest = ("3f786850e387550fdab836ed7e6dc881de23001b" * 4)[:length]
    assert mask(f"git show {digest}") == f"git show {digest}"
    assert mask(f"keyboard={digest}") == f"keyboard={digest}"
    assert mask(f"KEY={digest}") == f"KEY={MASK}"
    assert mask(f"the key {digest}") == f"the key {MASK}"
    assert mask(f"git show {digest}a") == f"git show {MASK}"


@pytest.mark.parametrize(
    "text",
    [
        "<password></password>",
        "curl -Xu a:b c",
        "cat token.txt | docker login --password-stdin",
        "echo hello && docker login -u me --password-stdin",
        "echo hello |docker run -p 8080:80 x",
        "cat <<< hello && docker run -it x",
        "docker login --password-stdin; cat <<< hello",
        "docker login --password-stdin ; cat <<< hello",
        "cd a && cat <<< hello",
        "ls|docker run -p 8080 x",
        "cat pw | sudo -S ls",
    ],
)
def test_a_command_that_is_given_no_password_stays(text):
    assert mask(text) == text


@pytest.mark.parametrize("text", ["x", "hunter2"])
def test_the_text_of_an_element_is_masked_and_its_tag_is_not(text):
    assert mask(f"<password>{text}</password>") == f"<password>{MASK}"


@in_one_test(
    "line",
    ["{}; ls -a", "{}; mysql -u a", "{} 2>&1", "{} > log", "x=$({})", "({})", "`{}`", "cd a; {}", "if {}; then b"],
)
@in_one_test("name", SECRETS)
def test_a_sign_of_the_shell_at_a_word_hides_no_command(name, line):
    shown = mask(line.replace("{}", written(name)[1]))
    assert not is_shown(name, shown), shown


@pytest.mark.parametrize(
    "line",
    [
        *("echo {} | chpasswd; ls", "echo {} | sudo passwd --stdin; ls", "ls;mysql -p{} a", "x=`mysql -p{} a`"),
        *(
            "echo {}|docker login --password-stdin;ls",
            "echo {}|docker login --password-stdin>log",
            "echo {}|chpasswd;ls",
        ),
        *("echo {}|chpasswd&&ls", "(echo {}|gh auth login --with-token)", "docker login --password-stdin<<<{}"),
        *(
            "docker login --password-stdin<<< {}",
            "chpasswd<<< me:{}",
            "chpasswd <<< me:{}",
            "smbclient -U me%{} //server/share",
        ),
    ],
)
def test_a_password_behind_a_sign_of_the_shell_is_masked(line):
    assert PASSWORD not in mask(line.replace("{}", PASSWORD))


def test_a_password_in_a_here_string_may_be_one_letter():
    assert mask("sudo -S ls <<<x") == f"sudo -S ls <<<{MASK}"
    assert mask("sudo -S<<<x") == f"sudo -S<<<{MASK}"


def test_a_password_behind_the_sign_of_a_user_is_masked_from_its_first_letter():
    assert mask("smbclient -U me%x //server/share") == f"smbclient -U me%{MASK} //server/share"


def test_of_a_pipe_only_what_is_written_into_it_is_masked():
    assert mask("echo a|echo pw|sudo -S ls") == f"echo a|echo {MASK} -S ls"
    assert mask("echo a | echo pw | sudo -S ls") == f"echo a | echo {MASK} | sudo -S ls"


@pytest.mark.parametrize("password", ["hunter(2", "(hunter2", "hun(ter)2", "2hunter(x)", "hunter2)"])
def test_a_password_with_a_bracket_is_masked_and_a_call_is_not(password):
    assert mask(f"mysql --password {password} shop") == f"mysql --password {MASK} shop"
    assert mask("token = next(stream); secret: config.get(name)") == "token = next(stream); secret: config.get(name)"


def test_a_quoted_password_may_begin_with_an_ordinary_word():
    assert mask("password: 'the secret one' is it") == f"password: {MASK} is it"
    assert mask("password: the is it") == "password: the is it"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\\r\\n"])
def test_a_key_without_its_end_is_masked_line_by_line(newline):
    lines = [
        "Proc-Type: 4,ENCRYPTED",
        "DEK-Info: AES-128-CBC,66ADD7FF",
        "",
        "MIIE3f78MIIE3f78" * 4,
        "MIIE3f78MIIE3f78",
        "abc=",
    ]
    key = newline.join(["-----BEGIN RSA PRIVATE KEY-----", *lines])
    assert mask(f"a {key}") == f"a {MASK}"
    assert mask(f"a {key}{newline} It is cut. More.") == f"a {MASK}{newline} It is cut. More."


def test_a_private_key_at_the_beginning_of_a_text_is_masked_too():
    assert mask(f"{PEM} and more") == f"{MASK} and more"


@pytest.mark.parametrize(
    ("word", "is_key"),
    [
        ("a" * 24 + "1234", False),
        ("a1" * 14, True),
        ("a1" * 13 + "a", False),  # 27 letters
        ("a1a" + "a" * 24 + "1", False),
        ("a1a1a" + "a" * 23, True),  # four changes between letters and digits
        ("a1a1a" + "a" * 6 + "/" + "a" * 17, False),  # in a part of eleven letters
        ("aB1" + "aB" * 4 + "a" * 17, True),  # eleven changes in 28 letters
        ("aB1" + "aB" * 2 + "a" * 21, False),
        ("aB" * 14, False),  # no digit
    ],
)
def test_a_key_by_its_looks_is_long_and_mixed(word, is_key):
    assert mask(word) == (MASK if is_key else word)


def test_the_quote_of_a_cookie_header_ends_the_cookies():
    assert mask("curl -H 'Cookie: a=b1; c=d1' x=y") == f"curl -H 'Cookie: {MASK} {MASK} x=y"


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_command_of_any_letters_takes_little_more_work_than_one_of_words(piece):
    def work(piece):
        return count_opcodes(plain_words, piece * (MAX_EXAMINED_CHARS // len(piece)), 200)

    assert work(piece) < 50 * work("some words ")  # 34; a square of it is 4,000


@pytest.mark.parametrize(
    "text",
    ["alter user x identified by ''", "password '' is empty", 'the password "" was refused'],
)
def test_empty_quotation_marks_are_not_a_password(text):
    assert mask(text) == text


@pytest.mark.parametrize(
    ("run", "mixed"),
    [("aaaAA00aaa", True), ("aaaAA00aaaa", False)],
    ids=["three changes in ten letters", "three in eleven"],
)
def test_letters_are_mixed_if_three_of_ten_change_their_kind(run, mixed):
    assert is_mixed([run]) is mixed


@pytest.mark.parametrize(
    ("word", "holds"),
    [
        ("12345678-1234-1234-1234-123456789abc", True),
        ("id12345678-1234-1234-1234-123456789abcXY", True),
        ("12345678-1234-1234-1234-12345678901g", False),
        ("g2345678-1234-1234-1234-123456789abc", False),
        ("12345678-1234-1234-1234-123456789ab", False),
        ("2345678-1234-1234-1234-123456789abc", False),
    ],
)
def test_a_uuid_has_32_digits_in_base_16(word, holds):
    assert is_uuid(word.split("-")) is holds


@pytest.mark.parametrize(
    "text",
    [
        "vault login failed: permission denied",
        "snyk auth failed",
        "cargo login is needed",
        "cargo test login_page_2",
        "vault read secret/x1",
        "ansible-vault view group_vars/all2.yml",
        "smbclient -L server1",
    ],
)
def test_a_command_that_takes_a_password_elsewhere_keeps_its_other_words(text):
    assert mask(text) == text
