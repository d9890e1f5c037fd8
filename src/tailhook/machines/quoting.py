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
LONGEST_WORD = 4096  # characters of a word that are looked at


def plain_words(line: str, longest: int) -> str:
    """The words of a line, a blank between them, without what is invisible and what looks secret.

    longest: in characters; what is beyond is not looked at.
    """
    words = filter(None, (shown(word[:LONGEST_WORD]) for word in line.split()))
    kept, length = [], -1
    for word in masked(words):
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
        bare = word.strip("\"'()[]{},;.")
        name, sign, value = split_named(bare)
        if awaited and bare not in ("=", ":"):
            yield MASK
            awaited, quote = False, open_quote(word)
        elif (sign and value and is_secret_name(name)) or (sign and value and looks_secret(value)):
            yield f"{name}{sign}{MASK}"
            quote = open_quote(word.partition(sign)[2])
        elif looks_secret(bare) or has_user_info(bare):
            yield MASK
        else:
            yield word
            introduced = bare in ("=", ":") or (bare == "is" and "pass" in before.lower())
            awaited = (
                bare.lower() == "bearer"
                or (bare.startswith("--") and sign == "" and is_secret_name(bare))
                or (sign != "" and value == "" and is_secret_name(name))
                or (introduced and (awaited or is_secret_name(before)))
            )
        before = bare


def split_named(word: str) -> "tuple[str, str, str]":
    """name, the sign and the value of `name=value` or `name:value`; no sign where it is neither."""
    for at, letter in enumerate(word):
        if letter in "=:":
            return word[:at], letter, word[at + 1 :].strip("\"'")
    return word, "", ""


def open_quote(words: str) -> str:
    """The quotation mark that the words begin with and that does not end in them, "" for none."""
    return words[0] if words[:1] in ("'", '"') and words.count(words[0]) == 1 else ""


def is_secret_name(name: str) -> bool:
    lower = name.lower().replace(" ", "_")
    return any(secret in lower for secret in SECRET_NAMES)


def has_user_info(word: str) -> bool:
    """Whether a URL holds a password: scheme://user:password@host."""
    _, slashes, rest = word.partition("://")
    user, at, _ = rest.partition("@")
    return bool(slashes and at and ":" in user)


def looks_secret(word: str) -> bool:
    """Whether a word is a key by its looks: a known beginning, or long, of letters and digits mixed."""
    if len(word) >= SHORTEST_SECRET and word.startswith(SECRET_STARTS):
        return True
    if word.startswith("-----BEGIN"):
        return True
    if len(word) < SHORTEST_KEY or not all(letter.isalnum() or letter in "+/=_-" for letter in word):
        return False
    digits = sum(letter.isdigit() for letter in word)
    return 4 <= digits < len(word) and "/" not in word[:2]
