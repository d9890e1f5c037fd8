"""The memory machine's keywords. The compiled core is built from them (ext/tables.py); no hook loads this module.

Word boundaries and letter case follow `re`, with `\\b` and re.IGNORECASE.
"""

from tailhook.machines.memory import CATEGORIES, NEGATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# By category: the keywords of a line, and the boosters near it that confirm the category.
KEYWORDS: "dict[str, tuple[tuple[str, ...], tuple[str, ...]]]" = {
    "DECISION": (
        ("decided", "chose", "selected", "went with", "picked"),
        ("because", "over", "instead of", "rather than", "rationale"),
    ),
    "RUNBOOK": (
        ("error", "exception", "traceback", "stack trace", "failed"),
        ("fixed by", "resolved", "root cause", "solution", "workaround"),
    ),
    "CONSTRAINT": (
        ("limitation", "API limit", "cannot", "restricted", "not supported", "quota"),
        ("discovered", "found that", "turns out"),
    ),
    "TECH_DEBT": (
        ("TODO", "deferred", "tech debt", "workaround", "hack", "will address later"),
        ("because", "for now", "temporary", "acknowledged"),
    ),
    "PREFERENCE": (
        ("always use", "prefer", "convention", "from now on", "standard", "never use"),
        ("established", "agreed", "going forward"),
    ),
}
# Keywords that the table above misses in practice.
MORE_KEYWORDS: "dict[str, tuple[tuple[str, ...], tuple[str, ...]]]" = {
    "DECISION": (
        (
            "decide to",
            "decision is",
            "decision was",
            "decision:",
            "choose",
            "chosen",
            "opted for",
            "opted to",
            "opting for",
            "settled on",
            "let's go with",
            "let\u2019s go with",
            "let us go with",
            "going with",
            "go with",
            "we'll use",
            "we\u2019ll use",
            "we will use",
            "switched to",
            "switching to",
            "ruled out",
        ),
        ("since", "so that", "trade-off", "tradeoff", "reason", "reasons", "simpler", "better", "to avoid"),
    ),
    "RUNBOOK": (
        (
            "errors",
            "exceptions",
            "tracebacks",
            "stack traces",
            "fails",
            "failing",
            "failure",
            "failures",
            "crashed",
            "crashes",
            "crash",
            "segfault",
            "timed out",
            "hangs",
            "root cause was",
            "the cause was",
            "broke",
        ),
        (
            "fixed",
            "fix is",
            "the fix",
            "fixes it",
            "resolves",
            "root cause was",
            "the cause was",
            "caused by",
            "was missing",
            "solved",
            "solved by",
            "works again",
            "had to",
            "workarounds",
        ),
    ),
    "CONSTRAINT": (
        (
            "limitations",
            "API limits",
            "rate limit",
            "rate limits",
            "rate-limit",
            "rate-limited",
            "rate limited",
            "can't",
            "can\u2019t",
            "unsupported",
            "not allowed",
            "not possible",
            "does not support",
            "doesn't support",
            "doesn\u2019t support",
            "no support for",
            "quotas",
            "at most",
            "must not",
            "read-only",
            "only works",
            "requires",
            "maximum of",
        ),
        (
            "turned out",
            "found out",
            "learned that",
            "noticed that",
            "documentation says",
            "docs say",
            "so we",
            "therefore",
        ),
    ),
    "TECH_DEBT": (
        (
            "TODOs",
            "FIXME",
            "technical debt",
            "workarounds",
            "hacks",
            "hacky",
            "defer",
            "deferring",
            "postponed",
            "later we",
            "clean up later",
            "clean this up",
            "quick fix",
            "stopgap",
            "hard-coded",
            "hardcoded",
            "follow-up",
            "follow-ups",
            "revisit",
        ),
        ("temporarily", "until", "later", "eventually", "next release", "not ideal", "should be", "left"),
    ),
    "PREFERENCE": (
        (
            "prefers",
            "preferred",
            "conventions",
            "standards",
            "please always",
            "please never",
            "always run",
            "never commit",
            "always write",
            "always add",
            "never add",
            "in this project we",
            "in this repo we",
            "we always",
            "we never",
            "make sure to always",
            "house style",
            "style guide",
        ),
        (
            "from here on",
            "in future",
            "in the future",
            "please",
            "team",
            "everywhere",
            "in this project",
            "in this repo",
        ),
    ),
}
# Negations: they cancel a keyword right behind them, in the second table.
NEGATIONS = (
    "not",
    "never",
    "no",
    "without",
    "nobody",
    "haven't",
    "haven\u2019t",
    "hasn't",
    "hasn\u2019t",
    "hadn't",
    "hadn\u2019t",
    "didn't",
    "didn\u2019t",
    "don't",
    "don\u2019t",
    "doesn't",
    "doesn\u2019t",
    "isn't",
    "isn\u2019t",
    "wasn't",
    "wasn\u2019t",
    "won't",
    "won\u2019t",
    "yet to",
    "should we",
    "could we",
    "if we",
)


def tables() -> "dict[str, list[tuple[int, str]]]":
    """Return each profile's keywords, with their numbers.

    The number of a category's keyword is twice the category's place, and that of its booster one more. The number of a
    negation is the next one after all these.
    """
    seed = [(number, word) for number, words in enumerate(both(KEYWORDS)) for word in words]
    more = [(number, word) for number, words in enumerate(both(MORE_KEYWORDS)) for word in words]
    return {"seed": seed, "tuned": [*seed, *more, *((NEGATION, word) for word in NEGATIONS)]}


def both(keywords: "Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]") -> "Iterable[tuple[str, ...]]":
    """Return the primary keywords of a category, and then its boosters."""
    return (words for category in CATEGORIES for words in keywords[category])
