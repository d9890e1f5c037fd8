"""Tokens of the model's API."""

from typing import NamedTuple


class Usage(NamedTuple):
    """Tokens that one response of the API used.

    The input is what was neither read from the cache nor written to it. A count that is missing, or that is not a whole
    number, is 0.

    >>> Usage(input=3, output=120, cache_read=9000, cache_creation=0)
    Usage(input=3, output=120, cache_read=9000, cache_creation=0)
    """

    input: int
    output: int
    cache_read: int
    cache_creation: int
