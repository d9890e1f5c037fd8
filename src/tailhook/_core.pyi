from typing import TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[object, ...])

class Automaton:
    """The matcher over one table of `tailhook.automaton.compile_table`.  (ext/automaton.pxi)

    data: the table. names: of the numbers that the patterns were given. Raises ValueError for anything else than
    such a table: it is checked whole, so that a damaged one cannot lead out of itself.
    """

    data: bytes
    names: tuple[str, ...]

    def __init__(self, data: bytes, names: tuple[str, ...]) -> None: ...
    def hits(self, text: bytes, prefiltered: bool = True) -> list[tuple[int, int, int]]:
        """All matches, wherever they stand: (number of the name, start, end), in no promised order.

        prefiltered: False runs the automaton alone over all of the text, as on processors without AVX2; it finds
        the same.

        >>> from tailhook.automaton import compile_table
        >>> table = compile_table([(0, "he"), (1, "she")], ignore_case=False, word=False)
        >>> sorted(Automaton(table, ("he", "she")).hits(b"ushers"))
        [(0, 2, 4), (1, 1, 4)]
        """

    def findall(self, source: str | bytes, own_line: bool, outside_code: bool, cls: type[_Tuple]) -> list[_Tuple]:
        """The matches that count, by start, end and name: a `cls` of (name, start, end, line, in_code) each.

        Offsets count characters of a str, bytes of bytes; lines count from 1. `PatternSet` says what the options
        mean. Raises TypeError for other texts and for a `cls` that is no tuple.
        """

def signals(source: str | bytes) -> list[str]:
    """The idle signals that count in a text, in order: "MODES:REASON", the modes of loop it ends and why.

    A signal stands alone on its line and outside code. (ext/tables.py has the list of them)

    >>> signals("Done.\\n\\n<loop-done>COMPLETE</loop-done>\\n")
    ['loop issue:COMPLETE']
    """
