"""Secrets in text that is stored or shown: keys, tokens, passwords. All text of a session goes through `mask`.

A secret is recognised by its beginning (`tailhook._core.find_keys`, from a maintained rule set), by its looks, by the
name or the option before it, by the command that it is given to, and by the header, the URL or the PEM block that it is
part of. Words are looked at one by one: time is linear in the text.

>>> mask("export API_TOKEN=abc && mysql -phunter2 -u me")
'export API_TOKEN=[secret] && mysql -p[secret] -u me'
"""

from tailhook._core import find_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MASK = "[secret]"
SECRET_NAMES = (
    "password", "passwd", "passphrase", "pwd", "_pass", "storepass", "keypass", "secret", "token", "credential",
    "apikey", "api_key", "api-key", "access_key", "accesskey", "accountkey", "private_key", "x-amz-signature",
)  # fmt: skip
MIN_KEY_CHARS = 28  # of a key by its looks: letters and digits in one word
KEY_SIGNS = dict.fromkeys(b"+/=_-")  # what else it may hold
MAX_KEY_CHARS = 256  # of a word, that are looked at for that
UUID_PARTS = [8, 4, 4, 4, 12]  # of an identifier, which is not a secret by itself
MAX_HOST_CHARS = 255  # of a URL's host with its port
WEBHOOKS = (  # the path behind them is the secret
    "hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "webhook.office.com/",
    "api.telegram.org/bot",
)  # fmt: skip
LOGINS = ("--user=", "--proxy-user=", "-u")  # options that `name:password` may be joined to
QUOTES = "'\""
CONTINUATION = "\\"  # at the end of a line that goes on
AROUND = QUOTES + "`()[]{},;.\\"  # what may stand around a word
DATA = ("-d", "--data", "--data-raw", "--data-urlencode", "-F", "--form", "--form-string")  # curl's, before one value
FLAGS = frozenset("sSkLfivgG")  # curl's, that may stand before `u` in one word

# ---- commands ----------------------------------------------------------------

SEPARATORS = frozenset(("|", "||", "&&", "&", ";", "then", "do", "else", "(", "{"))
# Commands that take a password joined to -p, and those that take it as the word after an option.
JOINED = frozenset(
    ("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mariadb", "mariadb-dump", "7z", "7za")
)
OPTIONS = {
    "sshpass": ("-p",),
    "redis-cli": ("-a", "--pass"),
    "mongo": ("-p",), "mongosh": ("-p",), "mongodump": ("-p",), "mongorestore": ("-p",),
    "unzip": ("-P",), "zip": ("-P",),
    "ldapsearch": ("-w",), "ldapadd": ("-w",), "ldapmodify": ("-w",),
    "ssh-keygen": ("-N", "-P"),
    "keytool": ("-storepass", "-keypass"),
    "sqlcmd": ("-P",), "isql": ("-P",),
}  # fmt: skip
LOGINS_WITH_P = frozenset(("docker", "podman", "helm", "az", "oc", "cf", "npm"))  # `docker login -p PASSWORD`
# What reads a password from a pipe: any command with such a word, and these two with their option.
READS_PASSWORD = frozenset(("--password-stdin", "--with-token", "--token-stdin", "chpasswd"))
READS_PASSWORD_WITH = {"sudo": "-S", "passwd": "--stdin"}
KNOWN_COMMANDS = {"echo", "printf", "htpasswd", *JOINED, *OPTIONS, *LOGINS_WITH_P, *READS_PASSWORD_WITH}


def given_passwords(words: "Sequence[str]") -> "dict[int, int]":
    """Return which words hold a password by the command that they are given to, and where in the word it begins."""
    found: dict[int, int] = {}
    command, start = "", 0  # the command at hand, and where its words begin
    is_login = False
    said: range | None = None  # the words of the `echo` in the pipe before
    for place, word in enumerate([*words, ";"]):
        name = word.strip(QUOTES + "()`$:").rpartition("/")[2]
        before = words[place - 1] if place > start else ""
        if word in SEPARATORS or place == len(words):
            said = range(start, place) if word == "|" and command in ("echo", "printf") else None
            if command == "htpasswd":
                found.update(htpasswd_password(words, start, place))
            command, start, is_login = "", place + 1, False
        elif name in KNOWN_COMMANDS:
            command, start, is_login = name, place + 1, False
        elif command in JOINED and word.startswith("-p") and len(word) > 2:
            found[place] = 2
        elif before in OPTIONS.get(command, ()) or (before == "-p" and is_login and command in LOGINS_WITH_P):
            found[place] = 0
        is_login = is_login or word == "login"
        if said and (word in READS_PASSWORD or (command and word == READS_PASSWORD_WITH.get(command))):
            found.update((one, 0) for one in said if words[one].lstrip(QUOTES)[:1] not in "-$%")
            said = None
    return found


def htpasswd_password(words: "Sequence[str]", start: int, end: int) -> "Iterator[tuple[int, int]]":
    """Yield the last word of `htpasswd -b FILE USER PASSWORD`, or of `-n -b USER PASSWORD`."""
    options = "".join(word for word in words[start:end] if word[:1] == "-")
    given = [place for place in range(start, end) if words[place][:1] != "-"]
    if "b" in options and len(given) == (2 if "n" in options else 3):
        yield given[-1], 0


# ---- words -------------------------------------------------------------------


class Masker:
    """Masks the words of a line.

    before: the word before.  is_awaited: that word said that a secret follows.  is_bearer: it was "bearer", which is an
    ordinary word, too.  quote: the mark that ends a secret of several words, "" for none.  is_cookie: the words of a
    Cookie header follow.
    """

    def __init__(self) -> None:
        self.before, self.quote = "", ""
        self.is_awaited = self.is_bearer = self.is_cookie = False

    def words(self, words: "Sequence[str]") -> "Iterator[str | None]":
        """Yield each word as it may be shown, or None for one that is part of a secret before it."""
        text = " ".join(words)
        given: dict[int, int] = {}
        if any(map(text.__contains__, KNOWN_COMMANDS)):
            places = [place for place, word in enumerate(words) if word != CONTINUATION]
            found = given_passwords([words[place] for place in places])
            given = {places[number]: start for number, start in found.items()}
        keys = key_starts(words, text)
        for place, word in enumerate(words):
            if self.is_ordinary(word) and place not in given and place not in keys:
                self.before = word
                yield word
            elif self.quote:
                self.quote = "" if self.quote in word else self.quote
                yield None
            elif word == CONTINUATION:
                yield word
            elif place in given:
                yield word[: given[place]] + MASK
                self.quote = open_quote(word, given[place])
                self.before = word
            else:
                yield self.word(word, keys.get(place, len(word)))

    def is_ordinary(self, word: str) -> bool:
        """Return whether a word is letters alone, and nothing was or is said that makes it or the next one a secret.

        Most words are, and pass at once.
        """
        return (
            word.isalpha()
            and len(word) < MIN_KEY_CHARS
            and not (self.is_awaited or self.is_cookie or self.quote)
            and self.before[-1:] not in ("=", ":")
            and word not in ("is", "bearer", "Bearer", "BEARER")
        )

    def word(self, word: str, key: int) -> str:
        """Return a word as it may be shown, and note what it says of the next one.  key: where in it a key begins."""
        bare = word.strip(AROUND)
        is_sign = bare in ("=", ":")
        names = list(named_values(bare))
        is_header = self.before[-1:] in ("=", ":") and is_authorization(self.before[:-1])
        start = min(secret_start(bare, names, self.before), max(0, key - word.find(bare)))
        shown = word
        if self.is_cookie and "=" in bare:
            shown = MASK
            self.is_cookie = word[-1] not in QUOTES
        elif self.is_awaited and not is_sign and not (self.is_bearer and bare.isalpha() and len(bare) < MIN_KEY_CHARS):
            shown = MASK
            self.is_awaited, self.quote = False, open_quote(word, 0)
        elif is_header and not is_sign and not word.lstrip(QUOTES).isalpha():  # no scheme, the credentials
            shown = MASK
            self.is_awaited = word[-1] not in QUOTES
        elif start < len(bare):
            shown = bare[:start] + MASK
            is_one_value = self.before in DATA or start == password_start(bare, self.before)
            self.quote = open_quote(word, word.index(bare) + start, is_one_value) if start else ""
        else:
            name, value = names[-1] if names else ("", 0)
            introduced = is_sign or (bare == "is" and "pass" in self.before.lower())
            self.is_bearer = not is_header and bare.lower() == "bearer"
            self.is_awaited = (
                is_header
                or self.is_bearer
                or (bare.startswith("--") and not names and is_secret_name(bare))
                or (value == len(bare) and is_secret_name(name))
                or (value < len(bare) and is_authorization(name))
                or (introduced and (self.is_awaited or is_secret_name(self.before)))
            )
            self.is_cookie = value == len(bare) and name.lower().endswith("cookie")
        self.before = self.before + bare if is_sign else bare
        return shown


def key_starts(words: "Sequence[str]", text: str) -> "dict[int, int]":
    """Return which words hold a key with a known beginning, and where in the word the first one begins.

    text: the words with a blank between them.
    """
    found: dict[int, int] = {}
    place = at = 0
    for start, _ in find_keys(text):
        while start >= at + len(words[place]) + 1:
            at += len(words[place]) + 1
            place += 1
        found.setdefault(place, start - at)
    return found


def named_values(word: str) -> "Iterator[tuple[str, int]]":
    """Yield each name in a word that a sign follows, and where its value begins: ("a", 2) and ("c", 6) of `a=b&c:d`.

    A URL's host is not a name, and two colons are not a sign.
    """
    start = 0
    for at, letter in enumerate(word, 1):
        if letter in "=:" and "::" not in word[max(0, at - 2) : at + 1] and not word.startswith("//", start):
            yield word[start : at - 1], at
        if letter in "=:&?;,":
            start = at


def secret_start(word: str, names: "Iterable[tuple[str, int]]", before: str) -> int:
    """Return where in a word a secret begins, the word's length if nowhere.

    names: as `named_values` yields them.  before: the word before.
    """
    start = min(password_start(word, before), webhook_start(word))
    for name, at in names:
        if at < start and (
            is_secret_name(name)
            or (name in ("sig", "pass") and (name == "pass") == before.startswith("-pass"))
            or looks_secret(value_at(word, at))
            or (is_authorization(name) and not word[at:].rstrip("\\").isalpha())
        ):
            start = at
            break
    if has_user_info(word[:start]) or (start == len(word) and looks_secret(word)):
        return 0
    return start


def value_at(word: str, start: int) -> str:
    """Return the value that begins there in a word, as far as its looks are judged."""
    value = word[start : start + MAX_KEY_CHARS].lstrip(QUOTES)
    for end in "&;,":
        value = value.partition(end)[0]
    return value.rstrip(QUOTES)


def webhook_start(word: str) -> int:
    """Return where the secret path of a webhook's URL begins, the word's length if the word is not one."""
    for address in WEBHOOKS:
        _, found, path = word.partition(address)
        if found and path:
            return len(word) - len(path)
    return len(word)


def password_start(word: str, before: str) -> int:
    """Return where the password begins in a word, as in curl's `-u name:password`; the word's length if nowhere."""
    is_short = before[:1] == "-" and before[-1] in "uU" and FLAGS.issuperset(before[1:-1])
    takes_login = is_short or before in ("--user", "--proxy-user")
    name, _, password = word.partition(":")
    if not (takes_login or word.startswith(LOGINS)) or not password:
        return len(word)
    # A URL; the format of `date -u`; a user and a group by their numbers.
    is_other = password.startswith("//") or name.startswith("+%") or name.isdecimal() or ")" in name
    return len(word) if is_other else len(name) + 1


def open_quote(word: str, start: int, or_before: bool = False) -> str:
    """Return the quotation mark of the value that begins at `start`, if the word does not close it; else "".

    or_before: it may stand anywhere before, as the word is part of one value that ends with it.
    """
    before = reversed(word[:start]) if or_before else ""
    mark = next((letter for letter in (*word[start : start + 1], *before) if letter in QUOTES), "")
    return mark if mark and word.count(mark) % 2 else ""


def is_secret_name(name: str) -> bool:
    """Return whether what bears such a name is a secret."""
    lower = name.lower().replace(" ", "_")
    return any(secret in lower for secret in SECRET_NAMES)


def is_authorization(name: str) -> bool:
    """Return whether a name is a header's that holds credentials behind a scheme: `Authorization: Basic …`."""
    return name.rstrip("\"']").lower().endswith("authorization")


def has_user_info(word: str) -> bool:
    """Return whether a URL holds a password or a token: scheme://user:password@host, scheme://token@host.

    A host that is too long for one counts as such; the user of ssh is no secret.
    """
    scheme, slashes, rest = word.partition("://")
    user, at, _ = rest.partition("@")
    if at and ":" in user:
        return True
    host = rest
    for end in "/?#":
        host = host.partition(end)[0]
    return bool(slashes) and (len(host) > MAX_HOST_CHARS or ("@" in host and not scheme.endswith("ssh")))


def looks_secret(word: str) -> bool:
    """Return whether a word looks like a key: long, of letters and digits mixed."""
    if len(word) < MIN_KEY_CHARS or not word.translate(KEY_SIGNS).isalnum():
        return False
    digits = sum(map(str.isdigit, word))
    return 4 <= digits < len(word) and "/" not in word[:2] and list(map(len, word.split("-"))) != UUID_PARTS


# ---- whole texts -------------------------------------------------------------


def mask(text: str) -> str:
    """Return a text without its secrets; everything else, blank space included, stays as it is.

    A secret of several words ends with its line, or with the last one of the lines that a backslash joins. Cut a text
    that is long before; it costs some microseconds a word.
    """
    lines = mask_pem(text).split("\n")
    joined: list[str] = []
    shown: list[str] = []
    for number, line in enumerate(lines, 1):
        joined.append(line)
        if not line.endswith("\\") or number == len(lines):
            shown.append(mask_line("\n".join(joined)))
            joined.clear()
    return "\n".join(shown)


def mask_pem(text: str) -> str:
    """Mask what stands between -----BEGIN and the end of -----END …-----, or the end of the text."""
    parts: list[str] = []
    at = 0
    while (start := text.find("-----BEGIN", at)) >= 0:
        end = text.find("-----END", start)
        close = text.find("-----", end + 8) if end >= 0 else -1
        parts += text[at:start], MASK
        at = close + 5 if close >= 0 else len(text)
    return "".join((*parts, text[at:]))


def mask_line(line: str) -> str:
    """Mask one line, or several that a backslash joins."""
    words = line.split()
    shown = list(Masker().words(words))
    if shown == words:
        return line
    parts: list[str] = []
    at = 0
    for word, as_shown in zip(words, shown, strict=True):
        start = line.index(word, at)
        if as_shown is not None:
            parts += line[at:start], as_shown
        at = start + len(word)
    return "".join((*parts, line[at:]))
