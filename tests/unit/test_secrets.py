"""Secrets in commands, errors and prose: masked wherever they stand; ordinary text is left as it is."""

import subprocess
import sys
from pathlib import Path

import pytest
from usual_secrets import MIXED, PEM, SECRETS, is_shown, written

from tailhook.machines.quoting import plain_words
from tailhook.machines.secret_rules import KEY_BEGINNINGS
from tailhook.machines.secrets import MASK, mask

CONTEXTS = {
    "command": "{}",
    "error": "Error: Command failed: {}\n    at Process.exit (app.js:12)\nexit code 1",
    "prose": "I ran this:\n\n    {}\n\nIt worked, because the *limit* was raised.",
    "list": "- first: {}\n- second: nothing",
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", SECRETS)
def test_a_usual_secret_is_masked_wherever_it_stands(name, context):
    shown = mask(CONTEXTS[context].replace("{}", written(name)[1]))
    assert MASK in shown
    assert not is_shown(name, shown), shown
    assert mask(shown) == shown, "masked twice, by the hook and by the daemon"


@pytest.mark.parametrize("name", SECRETS)
def test_a_usual_secret_is_masked_in_one_line(name):
    shown = plain_words(written(name)[1], 1000)
    assert MASK in shown
    assert not is_shown(name, shown), shown
    assert plain_words(shown, 1000) == mask(shown) == shown, "masked twice, by the hook and by the daemon"


@pytest.mark.parametrize("context", ["error", "prose", "list"])
@pytest.mark.parametrize("name", SECRETS)
def test_what_stands_around_a_secret_stays(name, context):
    before, _, after = CONTEXTS[context].partition("{}")
    shown = mask(CONTEXTS[context].replace("{}", written(name)[1]))
    assert shown.startswith(before)
    assert shown.endswith(after[after.index("\n") :]) or "PEM" in name


@pytest.mark.parametrize("beginning", KEY_BEGINNINGS)
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


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text):
    assert mask(text) == text
    assert mask(f"before\n{text}\n\tafter") == f"before\n{text}\n\tafter"


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


def test_several_pem_blocks_are_masked_and_what_is_between_them_is_not():
    assert mask(f"a {PEM} b {PEM}\nc") == f"a {MASK} b {MASK}\nc"


HOSTILE = [
    "word ", "a", "=", "a=b&", "'", "echo x | ", "sshpass -p ", "sk-", "://", "-----BEGIN", "-----END", "\n",
    "docker login ", "/eyJ", "htpasswd -b ", "cookie: a=b ", "bearer ",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_ten_times_the_text_takes_ten_times_the_steps(piece):
    """Counted in lines of Python that are run."""

    def steps(text):
        count = 0

        def trace(frame, event, argument):
            nonlocal count
            count += 1
            return trace

        sys.settrace(trace)
        try:
            mask(text)
        finally:
            sys.settrace(None)
        return count

    assert steps(piece * 3000) < 13 * steps(piece * 300) + 1000


def test_the_rules_in_the_tree_are_those_of_the_release_that_they_name():
    """Where the package index can be reached."""
    script = Path(__file__).parents[2] / "ext" / "secret_rules.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    if "Error" in done.stderr or "error" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0
