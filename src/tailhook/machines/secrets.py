"""Secrets in text that is stored or shown: keys, tokens, passwords. All text of a session goes through `mask`.

A secret is recognised by its beginning (`tailhook._core.find_keys`, from a maintained rule set), by its looks, by the
name or the option before it, by its command, and by the header, the URL or the PEM block around it. Words are looked at
one by one: time is linear in the text.

>>> mask("export API_TOKEN=abc && mysql -phunter2 -u me")
'export API_TOKEN=[secret] && mysql -p[secret] -u me'
"""

from tailhook._core import find_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MASK = "[secret]"

# ---- names -------------------------------------------------------------------

SECRET_WORDS = frozenset(("pwd", "pw", "credential", "credentials"))
SECRET_ENDINGS = (
    "password", "passwd", "passphrase", "pass", "secret", "token", "apikey", "accesskey", "accountkey",
    "privatekey",
)  # fmt: skip
NOT_PASSES = frozenset(("pass", "bypass", "compass", "encompass", "surpass", "trespass"))
KEY_KINDS = frozenset(  # of a `…_key`
    ("api", "access", "account", "private", "secret", "signing", "encryption", "master")
)
# The last word of a name that mentions a secret but does not hold one: `token_count`, `password.py`, `secret-name`.
NOT_HELD = (
    " count counts limit length len size type types name names url uri path file dir folder field fields env ttl"
    " expiry expires expired id ids index manager store usage used budget max min policy hash stdin test tests"
    " spec error errors py pyi ts tsx js jsx go rs rb java kt c h cc cpp cs php swift sh md rst txt json yaml"
    " yml toml lock log css html "
)
MAX_NAMES = 64  # of names examined in a word; the rest of a word with more is masked
MAX_NAME_CHARS = 64  # examined characters, from a name's end
# A word without any of these holds no secret's name.
NAME_SIGNS = ("pass", "pwd", "pw", "secret", "token", "credential", "key", "auth", "sig", "cookie")

# ---- values ------------------------------------------------------------------

# Words after a secret's name that are not secrets: types and constants of programs, and words of a sentence.
NOT_VALUES = (
    " str string bytes int integer number bool boolean float object any unknown never void optional required"
    " none null nil undefined true false a an the is are was were be it it's its this that they we you i not no"
    " and or but if in on of for to at by with from as because so must may should can cannot will would has have"
    " had expected given missing empty invalid wrong changed set unset "
)
PARSERS_WORDS = frozenset(("unexpected", "unknown", "expected", "illegal"))  # before "token", which is then a parser's
SCHEMES = frozenset(("basic", "bearer", "digest", "negotiate", "ntlm", "token", "apikey", "hoba", "mutual", "vapid"))
MIN_KEY_CHARS = 28  # of a key by its looks: letters and digits in one word
MAX_KEY_CHARS = 256  # of a word, examined for that
KEY_WORDS = frozenset(("key", "apikey", "token", "secret", "password", "passphrase", "credential", "credentials"))
NEAR_WORDS = 4  # words before a digest that may name it as a key
MAX_HOST_CHARS = 255  # of a URL's host with its port
WEBHOOKS = (  # the path behind them is the secret
    "hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "webhook.office.com/",
    "api.telegram.org/bot",
)  # fmt: skip
QUOTES = "'\""
CONTINUATION = "\\"  # at the end of a line that goes on
AROUND = QUOTES + "`()[]{},;.\\"  # what may stand around a word
AROUND_COMMANDS = AROUND.replace(".", "$:")  # a file's name may begin with a dot: `.htpasswd`
SIGNS = frozenset(("=", ":", "=>", ":=", "?=", "==", "+="))  # between a name and a value, as a word of their own

TELLING = frozenset("=:@<-_$'\"`")  # a word without any of these gives or names no secret, unless it looks like one
SETS = ("set", "login")  # `set NAME VALUE`, `login NAME password VALUE`

# ---- commands ----------------------------------------------------------------

HTTP_CLIENTS = frozenset(("curl", "wget", "http", "https", "xh"))  # -u name:password
LOGINS = ("--user=", "--proxy-user=", "-u")  # their options with `name:password` joined to them
DATA = ("-d", "--data", "--data-raw", "--data-urlencode", "-F", "--form", "--form-string")  # curl's, before one value
COOKIES = ("-b", "--cookie")
SECRET_FLAGS = frozenset("sSkLfivgG")  # curl's, that may stand before `u` in one word
# Commands that take passwords, by rules in passwords.py.
COMMANDS = (
    " mysql mysqldump mysqladmin mysqlimport mysqlshow mariadb mariadb-dump 7z 7za sshpass redis-cli mongo"
    " mongosh mongodump mongorestore unzip zip ldapsearch ldapadd ldapmodify ssh-keygen keytool openssl sqlcmd"
    " isql docker podman helm az oc cf npm sudo passwd chpasswd echo printf htpasswd"
    " vault cargo snyk ngrok rclone ansible-vault smbclient smbget smbcacls rpcclient "
)
# A line that gives a command a password has one of these: an option, a pipe, a here-string, or the word before it.
GIVING = (" -", "|", "<<<", " login ", " auth ", "authtoken ", " obscure ", " encrypt_string ")


# ---- words -------------------------------------------------------------------


class Masker:
    """Masks the words of a line.

    before: the word before.
    second: the word before that.
    is_awaited: whether the word before announces a secret.
    is_bearer: whether the word before was "bearer", which is an ordinary word, too.
    quote: the mark that ends a secret of several words, "" for none.
    is_escaped: whether a backslash stands before that mark.
    is_cookie: whether the words of a Cookie header follow.
    takes_login: whether an option of the line's command may hold `name:password`.
    """

    def __init__(self) -> None:
        self.before = self.second = self.quote = ""
        self.is_awaited = self.is_bearer = self.is_cookie = self.is_escaped = self.takes_login = False

    def words(self, words: "Sequence[str]") -> "Iterator[str | None]":
        """Yield each word in its shown form, or None for a word that is part of the secret before it."""
        text = " ".join(words)
        given: dict[int, int] = {}
        if any(sign in text for sign in GIVING) and any(map(is_command, words)):
            from tailhook.machines.passwords import given_passwords

            places = [place for place, word in enumerate(words) if word != CONTINUATION]
            found = given_passwords([words[place] for place in places])
            given = {places[number]: start for number, start in found.items() if number < len(places)}
        keys = key_starts(words, text)
        self.takes_login = " -" in text and not HTTP_CLIENTS.isdisjoint(map(command_in, words))
        for place, word in enumerate(words):
            if self.is_ordinary(word) and place not in given and place not in keys:
                self.second, self.before = self.before, word
                yield word
            elif self.quote:
                if self.is_escaped or self.quote in word.replace(f"\\{self.quote}", ""):
                    self.quote = "" if self.quote in word else self.quote
                yield None
            elif word == CONTINUATION:
                yield word
            elif place in given:
                yield word[: given[place]] + MASK
                self.open_quote(word, given[place])
                self.second, self.before = self.before, word
            else:
                before = self.before
                yield self.word(word, keys.get(place, len(word)), words[max(0, place - NEAR_WORDS) : place])
                self.second = before

    def is_ordinary(self, word: str) -> bool:
        """Return whether a word is short and without signs, and neither it nor the next word can be a secret.

        Most words are, and pass at once.
        """
        return (
            len(word) < MIN_KEY_CHARS
            and (word.isalpha() or TELLING.isdisjoint(word))
            and not (self.is_awaited or self.is_cookie or self.quote)
            and self.before not in SETS
            and self.before[-1:] not in ("=", ":")
            and "assword" not in word
            and "earer" not in word
            and word != "is"
        )

    def word(self, word: str, key: int, near: "Sequence[str]") -> str:
        """Return a word in its shown form. Notes whether the next word is a secret.

        key: the index in the word of a key with a known beginning; the word's length if there is none.
        near: the words before.
        """
        bare = word.strip(AROUND)
        is_sign = bare in SIGNS
        names = list(named_values(bare))
        is_header = self.before[-1:] in ("=", ":") and is_authorization(self.before[:-1])
        is_spared = not bare or (word[0] not in QUOTES and (f" {bare.lower()} " in NOT_VALUES or is_call(word)))
        is_parsers = self.before.lower() in PARSERS_WORDS and bare.lower().rstrip("=:") == "token"
        start = min(self.secret_start(bare, names, near), max(0, key - word.find(bare)))
        shown = word
        if self.is_cookie and "=" in bare:
            shown = MASK
            self.is_cookie = word[-1] not in QUOTES
        elif self.is_awaited and not (is_sign or is_spared or (self.is_bearer and is_prose(bare))):
            shown = MASK
            self.is_awaited = False
            self.open_quote(word, 0)
        elif is_header and not (is_sign or bare.lower() in SCHEMES or (is_prose(bare) and word[-1] not in QUOTES)):
            shown = MASK
            self.is_awaited = word[-1] not in QUOTES
        elif start < len(bare):
            shown = bare[:start] + MASK
            is_one_value = self.before in DATA or start == self.password_start(bare)
            self.quote = ""
            if start:
                self.open_quote(word, word.index(bare) + start, is_one_value)
        elif self.is_quoted_password(word):
            shown = MASK
            self.open_quote(word, 0)
        else:
            self.note(word, bare, names, is_sign, is_header)
        if is_parsers:
            self.is_awaited, bare = False, ""
        self.before = self.before + bare if is_sign and self.before[-1:] not in ("=", ":") else bare
        return shown

    def note(self, word: str, bare: str, names: "Sequence[tuple[str, int]]", is_sign: bool, is_header: bool) -> None:
        """Note whether the next word is a secret; this one is not."""
        name, value = names[-1] if names else ("", 0)
        is_last = value == len(bare) and word.rstrip(QUOTES)[-1:] in ("=", ":") and word[-2:] not in ("''", '""')
        introduced = is_sign or (bare == "is" and "pass" in self.before.lower())
        self.is_bearer = not is_header and bare.lower() == "bearer"
        self.is_awaited = bool(
            (is_header and bare.lower() in SCHEMES)
            or self.is_bearer
            or (bare[:1] == "-" and len(bare) > 3 and not names and is_secret_name(bare))
            or (is_last and is_secret_name(name))
            or (value < len(bare) and is_authorization(name))
            or (introduced and (self.is_awaited or is_secret_name(self.before) or self.before == "PASSWORD"))
            or (self.before == "set" and "_" in bare and is_secret_name(bare))
            or (bare == "password" and self.second == "login")
        )
        self.is_cookie = (value == len(bare) and name.lower().endswith("cookie")) or (
            self.takes_login and bare in COOKIES
        )

    def is_quoted_password(self, word: str) -> bool:
        """Return whether a word is a quotation behind "password", as in SQL and prose."""
        before, second = self.before.lower(), self.second.lower()
        return (
            word[0] in QUOTES
            and len(word) > 2
            and (before == "password" or (before == "by" and second == "identified"))
        )

    def open_quote(self, word: str, start: int, or_before: bool = False) -> None:
        """Note the quotation mark of the value that begins at `start`, if the word does not close it.

        or_before: whether the mark may stand anywhere before: the word is then a part of one value.
        """
        value = word[start:].lstrip("$")[:1]
        mark = next(
            (letter for letter in (*value, *(reversed(word[:start]) if or_before else "")) if letter in QUOTES), ""
        )
        self.is_escaped = bool(mark) and f"\\{mark}" in word[: start + 1]
        ends = word.count(mark) if self.is_escaped else word.replace(f"\\{mark}", "").count(mark) if mark else 0
        self.quote = mark if mark and ends % 2 else ""

    def secret_start(self, word: str, names: "Iterable[tuple[str, int]]", near: "Sequence[str]") -> int:
        """Return the index of a secret in a word; the word's length if there is none.

        names: from `named_values`. near: the words before.
        """
        start = min(self.password_start(word), webhook_start(word), element_start(word))
        lower = word.lower()
        may_name = any(sign in lower for sign in NAME_SIGNS)
        for number, (name, at) in enumerate(names):
            if at >= start:
                break
            if number == MAX_NAMES:
                return at
            value = value_at(word, at)
            if value and (
                (may_name and self.is_named_secret(name, word[at - 1], word, at, value))
                or looks_secret(value, may_name and not KEY_WORDS.isdisjoint(words_of(name[-MAX_NAME_CHARS:])))
            ):
                start = at
                break
        if has_user_info(word[:start]):
            return 0
        if start < len(word) or len(word) < MIN_KEY_CHARS:
            return start
        is_named = any(one.strip(AROUND + "=:").lower() in KEY_WORDS for one in near)
        return 0 if looks_secret(word, is_named) else start

    def is_named_secret(self, name: str, sign: str, word: str, at: int, value: str) -> bool:
        """Return whether the name makes the value behind it a secret."""
        lower = name.lower()
        if f" {value.strip(AROUND).lower()} " in NOT_VALUES and word[at] not in QUOTES:
            return False
        if lower == "sig" or lower.endswith("_auth"):
            return sign == "="
        if lower == "pass":
            return self.before.startswith("-pass") or (sign == "=" and not value.isdecimal())
        return is_secret_name(name) or (is_authorization(name) and not word[at:].rstrip("\\").isalpha())

    def password_start(self, word: str) -> int:
        """Return the index of a password, as in curl's `-u name:password`; the word's length if there is none."""
        if not self.takes_login:
            return len(word)
        before = self.before
        is_short = before[:1] == "-" and before[-1] in "uU" and SECRET_FLAGS.issuperset(before[1:-1])
        takes_login = is_short or before in ("--user", "--proxy-user")
        name, _, password = word.partition(":")
        if not (takes_login or word.startswith(LOGINS)) or not password:
            return len(word)
        is_url = password.startswith("//")
        return len(word) if is_url else len(name) + 1


def command_in(word: str) -> str:
    """Return the command's name in a word of a command line: "mysql" of `x=$(/usr/bin/mysql` and of `ls;mysql<<<x`."""
    name = word.partition("<<<")[0].strip(AROUND_COMMANDS)
    for sign in "(`;/":
        name = name.rpartition(sign)[2]
    return name


def is_command(word: str) -> bool:
    """Return whether a word of a command line names a command that takes passwords."""
    name = command_in(word)
    return name != "" and f" {name} " in COMMANDS


def key_starts(words: "Sequence[str]", text: str) -> "dict[int, int]":
    """Return the words with a key of a known beginning, and the index of the first key in the word.

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
    """Yield each name before a sign in a word, and the index of its value: ("a", 2) and ("c", 6) of `a=b&c:d`.

    A URL's host is not a name, and two colons are not a sign.
    """
    start = 0
    for at, letter in enumerate(word, 1):
        if letter in "=:" and "::" not in word[max(0, at - 2) : at + 1] and not word.startswith("//", start):
            yield word[start : at - 1], at
        if letter in "=:&?;,#":
            start = at


def value_at(word: str, start: int) -> str:
    """Return the value at `start`, up to the next `&`, `;` or `,`, at most MAX_KEY_CHARS, without quotes."""
    value = word[start : start + MAX_KEY_CHARS].lstrip(QUOTES + "\\")
    for end in "&;,":
        value = value.partition(end)[0]
    return value.rstrip(QUOTES + "\\")


def webhook_start(word: str) -> int:
    """Return the index of the secret path in a webhook's URL; the word's length if the word is not one."""
    for address in WEBHOOKS:
        _, found, path = word.partition(address)
        if found and path:
            return len(word) - len(path)
    return len(word)


def looks_secret(word: str, is_named: bool) -> bool:
    """Return whether a word looks like a key.  is_named: whether it is called one."""
    if len(word) < MIN_KEY_CHARS or "." in word or not any(map(str.isdigit, word[:MAX_KEY_CHARS])):
        return False
    from tailhook.machines.key_looks import is_key

    return is_key(word, is_named)


def element_start(word: str) -> int:
    """Return the index of the text of an XML element with a secret's name: `<password>…</password>`."""
    close = word.find(">")
    if close < 0 or word.find("</", close) <= close + 1:
        return len(word)
    return close + 1 if is_secret_name(word[word.rfind("<", 0, close) + 1 : close]) else len(word)


def is_call(word: str) -> bool:
    """Return whether a word is a call in a program: `next(stream)`, `config.get(name);`."""
    name, bracket, _ = word.partition("(")
    return bracket != "" and word.rstrip(",;").endswith(")") and name.replace(".", "").isidentifier()


def is_prose(word: str) -> bool:
    """Return whether a word has only letters and hyphens between them, and is no longer than ordinary words."""
    return len(word) < MIN_KEY_CHARS and word.replace("-", "").isalpha()


def is_secret_name(name: str) -> bool:
    """Return whether a value with this name is a secret.

    >>> [is_secret_name(name) for name in ("DB_PASSWORD", "apiKey", "max_tokens", "src/token.py", "secretary")]
    [True, True, False, False, False]
    """
    words = words_of(name[-MAX_NAME_CHARS:])
    if not words or f" {words[-1]} " in NOT_HELD:
        return False
    if len(words) > 1 and words[-1] == "pass":
        return True
    return any(
        word in SECRET_WORDS
        or (word.endswith(SECRET_ENDINGS) and word not in NOT_PASSES)
        or (word == "key" and before in KEY_KINDS)
        or (word == "signature" and before == "amz")
        for before, word in zip(("", *words), words, strict=False)
    )


def words_of(name: str) -> "list[str]":
    """Return the words of a name in small letters: "db-password", "apiKey", "AWS_SECRET" have two each."""
    parts: list[str] = []
    last = ""
    for letter in name:
        if letter.isupper() and last.islower():
            parts.append(" ")
        parts.append(letter if letter.isalnum() else " ")
        last = letter
    return "".join(parts).lower().split()


def is_authorization(name: str) -> bool:
    """Return whether a name is that of a header with credentials behind a scheme: `Authorization: Basic …`."""
    return name.rstrip("\"']").lower().endswith("authorization")


def has_user_info(word: str) -> bool:
    """Return whether a URL holds a password or a token: scheme://user:password@host, scheme://token@host.

    Text that is too long for a host counts as a secret; the user of ssh does not.
    """
    pieces = word.split("//")
    return any(is_login(pieces[place - 1], pieces[place]) for place in range(1, len(pieces)))


def is_login(scheme: str, rest: str) -> bool:
    """Return whether the part behind the two slashes of a URL begins with a password or a token."""
    user, at, _ = rest.partition("@")
    name, colon, password = user.partition(":")
    port, slash, _ = password.partition("/")
    if at and colon and "/" not in name and not (slash and (port.isdecimal() or not port)):
        return True
    if not scheme.endswith(":"):
        return False
    host = rest
    for end in "/?#":
        host = host.partition(end)[0]
    return len(host) > MAX_HOST_CHARS or ("@" in host and not scheme.endswith("ssh:"))


# ---- whole texts -------------------------------------------------------------


def mask(text: str) -> str:
    """Return a text without its secrets; everything else, blank space included, stays as it is.

    A secret of several words ends with its line, or with the last of the lines that a backslash joins. Cut a long text
    first: masking takes some microseconds a word.
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
    """Mask private keys in PEM."""
    if "-----BEGIN " not in text:
        return text
    from tailhook.machines.pem import mask_keys

    return mask_keys(text, MASK)


def mask_line(line: str) -> str:
    """Mask one line, or several that a backslash joins."""
    words = line.split()
    shown = list(Masker().words(words)) if words else []
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
