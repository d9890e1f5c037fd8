"""Text from a transcript or a tool stays text: nothing in it steers a terminal, hides, or gives a secret away."""

from tailhook.machines.secrets import Masker, mask_pem

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
MAX_EXAMINED_CHARS = 4096  # of a line


def plain_words(line: str, longest: int) -> str:
    """Return the words of a line, a blank between them, without what is invisible and without secrets.

    longest: in characters, at most MAX_EXAMINED_CHARS // 4; what is beyond MAX_EXAMINED_CHARS is not examined.
    """
    words = mask_pem(line[:MAX_EXAMINED_CHARS]).split()
    # The cut may fall inside the last word, and a secret be recognised by its end: drop the word, unless so much of it
    # is there that a secret would have been recognised.
    if words and len(line) > MAX_EXAMINED_CHARS and len(shown(words[-1])) < MAX_EXAMINED_CHARS // 2:
        words.pop()
    kept, length = [], -1
    for word in Masker().words([word for word in map(shown, words) if word not in ("", "\\")]):
        if word is None:
            continue
        kept.append(word)
        length += 1 + len(word)
        if length > longest:
            break
    return " ".join(kept)[:longest].rstrip()


def shown(word: str) -> str:
    """Return a word without what cannot be seen."""
    return word if word.isascii() and word.isprintable() and "`" not in word else "".join(map(visible, word))


def visible(letter: str) -> str:
    """Return the letter, or what stands for it: nothing if it cannot be seen, U+FFFD for half a surrogate pair."""
    if letter == "`" or any(first <= ord(letter) <= last for first, last in INVISIBLE):
        return ""
    if letter.isprintable():
        return letter
    return "\ufffd" if "\ud800" <= letter <= "\udfff" else ""
