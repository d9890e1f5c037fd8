"""The width of a text on a terminal."""

import unicodedata


def count_cells(text: str) -> int:
    r"""Return the number of terminal cells for a text: two for a wide character, 0 for one that joins another.

    >>> count_cells("tests"), count_cells("テスト"), count_cells("e\u0301")
    (5, 6, 1)
    """
    return len(text) if text.isascii() else sum(map(letter_cells, text))


def letter_cells(letter: str) -> int:
    """Return the number of cells for a character.

    Unicode 15, UAX #11 (East Asian Width); marks (Mn, Me) and format characters (Cf) take none.
    """
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1
