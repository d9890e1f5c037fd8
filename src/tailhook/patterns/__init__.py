"""Sets of patterns: what users make of them, and the table by which the core finds them."""


def __getattr__(name: str) -> object:
    """Load what pickles of older versions name here. Late, because the build imports this package before the core."""
    if name not in ("PatternSet", "rebuilt"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tailhook.patterns import sets

    return getattr(sets, name)
