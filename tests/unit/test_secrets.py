"""Secrets in commands, errors and prose: masked wherever they stand; ordinary text is left as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from tailhook.machines.quoting import plain_words
from tailhook.machines.secret_rules import KEY_BEGINNINGS
from tailhook.machines.secrets import MASK, mask

MIXED = "a1B2c3D4" * 30  # letters and digits, as many as a key needs
PASSWORD = "hunter2hunter"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{MIXED}\n{MIXED}\n-----END RSA PRIVATE KEY-----"

# What each must not show, and the ways that people and programs write it.
SECRETS = {
    "OpenAI": (f"sk-proj-{MIXED[:48]}", "OPENAI_API_KEY={} python x.py"),
    "Anthropic": (f"sk-ant-api03-{MIXED[:90]}", "curl -H 'x-api-key: {}' https://api.example.org"),
    "GitHub": (f"ghp_{MIXED[:36]}", "git clone https://{}@github.com/a/b"),
    "GitHub, fine-grained": (f"github_pat_{MIXED[:82]}", "gh auth login --with-token {}"),
    "GitLab": (f"glpat-{MIXED[:20]}", "curl --header 'PRIVATE-TOKEN: {}' https://gitlab.example.org"),
    "AWS key id": (f"AKIA{MIXED[:16].upper()}", "aws configure set aws_access_key_id {}"),
    "AWS secret": ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1234", "export AWS_SECRET_ACCESS_KEY={}"),
    "Google": (f"AIza{MIXED[:35]}", "curl 'https://maps.example.org/json?key={}&q=x'"),
    "Slack": (f"xoxb-{MIXED[:40]}", "slack --token {}"),
    "Slack webhook": (f"T0{MIXED[:8]}/B0{MIXED[:8]}/{MIXED[:24]}", "curl -d x https://hooks.slack.com/services/{}"),
    "Discord webhook": (f"123456789012345678/{MIXED[:60]}", "curl https://discord.com/api/webhooks/{}"),
    "Telegram": (f"1234567890:{MIXED[:35]}", "curl https://api.telegram.org/bot{}/getMe"),
    "Stripe": (f"sk_live_{MIXED[:24]}", "stripe --api-key {} listen"),
    "npm": (f"npm_{MIXED[:36]}", "npm config set //registry.example.org/:_authToken={}"),
    "PyPI": (f"pypi-{MIXED[:160]}", "twine upload -p {} dist/*"),
    "Hugging Face": (f"hf_{MIXED[:34]}", "huggingface-cli login --token {}"),
    "SendGrid": (f"SG.{MIXED[:22]}.{MIXED[:43]}", "echo {} > .env"),
    "Databricks": (f"dapi{'a1b2c3d4' * 4}", "databricks configure --token {}"),
    "DigitalOcean": (f"dop_v1_{'a1b2c3d4' * 8}", "doctl auth init -t {}"),
    "JWT": (f"eyJ{MIXED[:30]}.eyJ{MIXED[:30]}.{MIXED[:40]}", "curl -H 'Authorization: Bearer {}' a.org"),
    "Vault": (f"hvs.{MIXED[:90]}", "VAULT_TOKEN={} vault read x"),
    "PEM": (MIXED, f"cat > key.pem <<EOF\n{PEM}\nEOF"),
    "PEM in one line": (MIXED, "printf '" + PEM.replace("\n", "\\n") + "' > key.pem"),
    "PEM that is cut": (MIXED, PEM[:200]),
    "basic authorization": ("dXNlcjpodW50ZXIy", "curl -H 'Authorization: Basic {}' a.org"),
    "URL": (PASSWORD, "psql postgresql://me:{}@db.example.org/x"),
    "password variable": (PASSWORD, "PGPASSWORD={} psql -h db"),
    "password option": (PASSWORD, "mysql --password={} -u root"),
    "mysql -p": (PASSWORD, "mysql -u root -p{} shop"),
    "mysqldump -p, quoted": (f"{PASSWORD} second2part", "mysqldump -u root -p'{}' shop"),
    "sshpass": (PASSWORD, "sshpass -p {} ssh me@example.org"),
    "sshpass, quoted": (f"{PASSWORD} second2part", "sshpass -p '{}' ssh me@example.org"),
    "docker login, piped": (PASSWORD, "echo {} | docker login -u me --password-stdin"),
    "docker login, piped with printf": (PASSWORD, "printf '%s' '{}' | docker login -u me --password-stdin ghcr.io"),
    "docker login -p": (PASSWORD, "docker login -u me -p {} ghcr.io"),
    "sudo, piped": (PASSWORD, "echo {} | sudo -S apt install x"),
    "gh, piped": (PASSWORD, "echo {} | gh auth login --with-token"),
    "htpasswd": (PASSWORD, "htpasswd -b .htpasswd me {}"),
    "htpasswd to stdout": (PASSWORD, "htpasswd -nbB me {} && make"),
    "redis-cli": (PASSWORD, "redis-cli -h db -a {} ping"),
    "mongosh": (PASSWORD, "mongosh -u me -p {} shop"),
    "unzip": (PASSWORD, "unzip -P {} x.zip"),
    "7z": (PASSWORD, "7z x -p{} x.7z"),
    "openssl": (PASSWORD, "openssl rsa -in key -passin pass:{}"),
    "curl -u": (PASSWORD, "curl -u me:{} a.org"),
    "keytool": (PASSWORD, "keytool -list -storepass {}"),
    "cookie": (MIXED[:20], "curl -H 'Cookie: session={}; theme=dark' a.org"),
    "two cookies": (MIXED[:20], "curl -H 'Cookie: theme=dark; session={}' a.org"),
    "Azure storage": (MIXED[:60], "AccountName=x;AccountKey={}==;EndpointSuffix=core"),
    "signed URL": (MIXED[:40], "curl 'https://x.blob.example.org/a?sv=1&sig={}'"),
    "JSON": (PASSWORD, '{{"user": "me", "password": "{}"}}'),
    "YAML": (PASSWORD, "user: me\n  password: {}\nhost: db"),
    "dotenv": (PASSWORD, "DB_HOST=db\nDB_PASSWORD={}\nDB_PORT=5432"),
    "hex": ("3f786850e387550fdab836ed7e6dc881de23001b", "the key is {} now"),
}


def written(name):
    """The secret, and the text that holds it."""
    secret, way = SECRETS[name]
    return secret, way.replace("{{", "{").replace("}}", "}").replace("{}", secret)


CONTEXTS = {
    "command": "{}",
    "error": "Error: Command failed: {}\n    at Process.exit (app.js:12)\nexit code 1",
    "prose": "I ran this:\n\n    {}\n\nIt worked, because the *limit* was raised.",
    "list": "- first: {}\n- second: nothing",
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", SECRETS)
def test_a_usual_secret_is_masked_wherever_it_stands(name, context):
    secret, text = written(name)
    whole = CONTEXTS[context].replace("{}", text)
    shown = mask(whole)
    assert MASK in shown
    for part in secret.split():
        assert part[:12] not in shown, shown
        assert part[-12:] not in shown, shown


@pytest.mark.parametrize("name", SECRETS)
def test_a_usual_secret_is_masked_in_one_line(name):
    secret, text = written(name)
    shown = plain_words(text, 1000)
    assert MASK in shown
    assert secret.split()[0][:12] not in shown


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


def test_a_private_key_is_masked_where_a_text_begins_with_it_too():
    assert mask(f"{PEM} and more") == f"{MASK} and more"


def test_a_key_by_its_looks_has_four_digits():
    assert mask("a" * 24 + "1234") == MASK
    assert mask("a" * 25 + "123") == "a" * 25 + "123"


def test_the_quote_of_a_cookie_header_ends_the_cookies():
    assert mask("curl -H 'Cookie: a=b1; c=d1' x=y") == f"curl -H 'Cookie: {MASK} {MASK} x=y"


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
