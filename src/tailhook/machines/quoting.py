"""Text of a session for display: without control characters and secrets."""

from tailhook.machines import is_visible
from tailhook.machines.secrets import Masker, mask, mask_pem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ELLIPSIS = "…"  # the end of a text that was cut: what is not shown may change what a command does
MAX_EXAMINED_CHARS = 4096  # of a line; of a text, behind the shown part


def plain_words(text: str, max_chars: int, without: "Mapping[int, None] | None" = None) -> str:
    r"""Return the words of a text on one line, separated by blanks, without secrets and invisible characters.

    max_chars: at most MAX_EXAMINED_CHARS // 4, with the ellipsis of a longer text. What stands behind
        MAX_EXAMINED_CHARS is not examined.
    without: a table of other characters to leave out, for `str.translate`.

    >>> plain_words("deploy --token \\\n  abc\nmake\x1b", 200)
    'deploy --token [secret] make'
    """
    examined = text[:MAX_EXAMINED_CHARS]
    lines = mask_pem(examined.translate(without) if without else examined).replace("\\\n", " ").split("\n")
    # The cut may fall inside the last word, and a secret may be recognised by its end. So drop the word, unless its
    # remaining part is long enough to recognise a secret.
    last = lines[-1].split()
    if last and len(text) > MAX_EXAMINED_CHARS and len(shown(last[-1])) < MAX_EXAMINED_CHARS // 2:
        lines[-1] = " ".join(last[:-1])
    kept, length = [], -1
    for line in filter(None, map(str.strip, lines)):
        for word in Masker().words([word for word in map(shown, line.split()) if word]):
            if word is not None:
                kept.append(word)
                length += 1 + len(word)
            if length > max_chars:
                return shortened(" ".join(kept), max_chars)
    words = " ".join(kept)
    return shortened(words, max_chars) if len(text) > MAX_EXAMINED_CHARS else words


def shortened(words: str, max_chars: int) -> str:
    """Return the beginning of some words with an ellipsis."""
    return words[: max_chars - len(ELLIPSIS)].rstrip() + ELLIPSIS


def plain_text(text: str, max_chars: int) -> str:
    r"""Return the beginning of a text, without secrets and with U+FFFD for each control or format character.

    Lines, tabs and blank space stay as they are. max_chars: in characters, with the ellipsis in the last line of a text
    that is longer.

    >>> plain_text("password:\thunter2\x1b[31m\nbye", 200)
    'password:\t[secret]\nbye'
    """
    beginning = text[: max_chars + MAX_EXAMINED_CHARS]
    if len(text) > len(beginning) and not beginning[-1].isspace():
        last = beginning.rsplit(maxsplit=1)[-1]
        if len(last) < MAX_EXAMINED_CHARS // 2:
            beginning = beginning[: -len(last)]  # as in `plain_words`: it may be a secret's beginning
    letters = beginning.replace("\r\n", "\n")
    words = mask("".join(one if one in "\n\t" or is_visible(one) else "\ufffd" for one in letters))
    is_cut = len(words) > max_chars or len(text) > max_chars + MAX_EXAMINED_CHARS
    return f"{words[: max_chars - 1 - len(ELLIPSIS)]}\n{ELLIPSIS}" if is_cut else words


def shown(word: str) -> str:
    """Return a word without invisible characters, and with U+FFFD for half a surrogate pair."""
    if word.isprintable():
        return word
    return "".join(
        letter if is_visible(letter) else "\ufffd" if "\ud800" <= letter <= "\udfff" else "" for letter in word
    )
