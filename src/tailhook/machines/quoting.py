"""Text from a transcript or a tool stays text: nothing in it steers a terminal, hides, or gives a secret away."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Letters and marks that are printable and show nothing: fillers, joiners, variation selectors.
INVISIBLE = (
    (0x34F, 0x34F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0100, 0xE01EF),
)
MASK = "[secret]"
SECRET_NAMES = (
    "password", "passwd", "passphrase", "pwd", "_pass", "secret", "token", "apikey", "api_key", "api-key", "access_key",
    "private_key",
)  # fmt: skip
SECRET_STARTS = (
    "sk-", "pk-", "rk_", "sk_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-",
    "AKIA", "ASIA", "AIza", "ya29.", "npm_", "pypi-", "hf_", "eyJ", "dop_v1_", "SG.",
)  # fmt: skip
SHORTEST_SECRET = 12
SHORTEST_KEY = 28  # characters of letters and digits in one word
KEY_SIGNS = dict.fromkeys(b"+/=_-")  # what else it may hold
LONGEST_KEY = 256  # characters that tell a key by its looks
LONGEST_HOST = 255  # characters of a URL's host with its port
LOGINS = ("--user=", "--proxy-user=", "-u")  # options that `name:password` may be joined to
QUOTES = "'\""
AROUND = QUOTES + "()[]{},;.\\"  # what may stand around a word
DATA = ("-d", "--data", "--data-raw", "--data-urlencode", "-F", "--form", "--form-string")  # curl's, before one value
FLAGS = frozenset("sSkLfivgG")  # curl's, that may stand before `u` in one word
LOOKED_AT = 4096  # characters of a line that are looked at


def plain_words(line: str, longest: int) -> str:
    """The words of a line, a blank between them, without what is invisible and what looks secret.

    longest: in characters, at most LOOKED_AT // 4; what is beyond LOOKED_AT is not looked at.
    """
    words = line[:LOOKED_AT].split()
    # The last word may go on: without its end it is told from a secret only where it is much longer than what is shown.
    if words and len(line) > LOOKED_AT and len(shown(words[-1])) < LOOKED_AT // 2:
        words.pop()
    kept, length = [], -1
    for word in masked(word for word in map(shown, words) if word not in ("", "\\")):
        kept.append(word)
        length += 1 + len(word)
        if length > longest:
            break
    return " ".join(kept)[:longest].rstrip()


def shown(word: str) -> str:
    """A word without what cannot be seen."""
    return word if word.isascii() and word.isprintable() and "`" not in word else "".join(map(visible, word))


def visible(letter: str) -> str:
    """The letter, or what stands for it: nothing for what cannot be seen, U+FFFD for half a surrogate pair."""
    if letter == "`" or any(first <= ord(letter) <= last for first, last in INVISIBLE):
        return ""
    if letter.isprintable():
        return letter
    return "\ufffd" if "\ud800" <= letter <= "\udfff" else ""


def masked(words: "Iterable[str]") -> "Iterator[str]":
    """The words without those that look like keys, tokens and passwords."""
    before, awaited = "", False  # the word before; whether it said that a secret follows
    quote = ""  # the mark that ends a secret of several words
    for word in words:
        if quote:
            quote = "" if quote in word else quote
            continue
        bare = word.strip(AROUND)
        is_sign = bare in ("=", ":")
        names = list(named_values(bare))
        is_header = before[-1:] in ("=", ":") and is_authorization(before[:-1])
        start = secret_start(bare, names, before)
        if awaited and not is_sign:
            yield MASK
            awaited, quote = False, open_quote(word, 0)
        elif is_header and not is_sign and not word.lstrip(QUOTES).isalpha():  # no scheme, the credentials
            yield MASK
            awaited = word[-1] not in QUOTES
        elif start < len(bare):
            yield bare[:start] + MASK
            is_one_value = before in DATA or start == password_start(bare, before)
            quote = open_quote(word, word.index(bare) + start, is_one_value) if start else ""
        else:
            yield word
            name, value = names[-1] if names else ("", 0)
            introduced = is_sign or (bare == "is" and "pass" in before.lower())
            awaited = (
                is_header
                or bare.lower() == "bearer"
                or (bare.startswith("--") and not names and is_secret_name(bare))
                or (value == len(bare) and is_secret_name(name))
                or (value < len(bare) and is_authorization(name))
                or (introduced and (awaited or is_secret_name(before)))
            )
        before = before + bare if is_sign else bare


def named_values(word: str) -> "Iterator[tuple[str, int]]":
    """Each name in a word that a sign follows, and where its value begins: ("a", 2) and ("c", 6) of `a=b&c:d`.

    A URL's host is no name, and two colons are no sign.
    """
    start = 0
    for at, letter in enumerate(word, 1):
        if letter in "=:" and "::" not in word[max(0, at - 2) : at + 1] and not word.startswith("//", start):
            yield word[start : at - 1], at
        if letter in "=:&?;,":
            start = at


def secret_start(word: str, names: "Iterable[tuple[str, int]]", before: str) -> int:
    """Where in a word a secret begins, its length where there is none.

    names: as `named_values` has them.  before: the word before.
    """
    start = password_start(word, before)
    for name, at in names:
        if at < start and (
            is_secret_name(name)
            or looks_secret(value_at(word, at))
            or (is_authorization(name) and not word[at:].rstrip("\\").isalpha())
        ):
            start = at
            break
    if has_user_info(word[:start]) or (start == len(word) and looks_secret(word)):
        return 0
    return start


def value_at(word: str, start: int) -> str:
    """The value that begins there in a word, as far as it tells a key."""
    value = word[start : start + LONGEST_KEY].lstrip(QUOTES)
    for end in "&;,":
        value = value.partition(end)[0]
    return value.rstrip(QUOTES)


def password_start(word: str, before: str) -> int:
    """Where the password begins in a word as curl's `-u name:password` takes it, the word's length for nowhere."""
    is_short = before[:1] == "-" and before[-1] in "uU" and FLAGS.issuperset(before[1:-1])
    takes_login = is_short or before in ("--user", "--proxy-user")
    name, _, password = word.partition(":")
    if not (takes_login or word.startswith(LOGINS)) or not password:
        return len(word)
    # A URL; the format of `date -u`; a user and a group by their numbers.
    is_other = password.startswith("//") or name.startswith("+%") or name.isdecimal() or ")" in name
    return len(word) if is_other else len(name) + 1


def open_quote(word: str, start: int, or_before: bool = False) -> str:
    """The quotation mark of the value that begins at `start`, if the word does not close it; "" for none.

    or_before: it may stand anywhere before, as the word is part of one value that ends with it.
    """
    before = reversed(word[:start]) if or_before else ""
    mark = next((letter for letter in (*word[start : start + 1], *before) if letter in QUOTES), "")
    return mark if mark and word.count(mark) % 2 else ""


def is_secret_name(name: str) -> bool:
    lower = name.lower().replace(" ", "_")
    return any(secret in lower for secret in SECRET_NAMES)


def is_authorization(name: str) -> bool:
    """Whether a name is a header's that holds credentials behind a scheme: `Authorization: Basic …`."""
    return name.rstrip("\"']").lower().endswith("authorization")


def has_user_info(word: str) -> bool:
    """Whether a URL holds a password or a token: scheme://user:password@host, scheme://token@host.

    A host that is too long for one counts as such; the user of ssh is no secret.
    """
    scheme, slashes, rest = word.partition("://")
    user, at, _ = rest.partition("@")
    if at and ":" in user:
        return True
    host = rest
    for end in "/?#":
        host = host.partition(end)[0]
    return bool(slashes) and (len(host) > LONGEST_HOST or ("@" in host and not scheme.endswith("ssh")))


def looks_secret(word: str) -> bool:
    """Whether a word is a key by its looks: a known beginning, or long, of letters and digits mixed."""
    if len(word) >= SHORTEST_SECRET and word.startswith(SECRET_STARTS):
        return True
    if word.startswith("-----BEGIN"):
        return True
    if len(word) < SHORTEST_KEY or not word.translate(KEY_SIGNS).isalnum():
        return False
    digits = sum(map(str.isdigit, word))
    return 4 <= digits < len(word) and "/" not in word[:2]
