"""The words of the memory machine's table, their matches by `re`, and hard lines to find them in."""

import re

KEYWORDS = (
    *("decided", "chose", "selected", "went with", "picked"),
    *("because", "over", "instead of", "rather than", "rationale"),
    *("error", "exception", "traceback", "stack trace", "failed"),
    *("fixed by", "resolved", "root cause", "solution", "workaround"),
    *("limitation", "API limit", "cannot", "restricted", "not supported", "quota"),
    *("discovered", "found that", "turns out"),
    *("TODO", "deferred", "tech debt", "hack", "will address later"),
    *("for now", "temporary", "acknowledged"),
    *("always use", "prefer", "convention", "from now on", "standard", "never use"),
    *("established", "agreed", "going forward"),
)

BLANKS = [chr(code) for code in range(0x3001) if chr(code).isspace()]
BESIDE = [
    *(
        "",
        " ",
        " ",
        ".",
        ",",
        "-",
        "_",
        "a",
        "Z",
        "7",
        "é",
        "\u0301",
        "\u200b",
        "\ufffd",
        "\x00",
        "😀",
        "\udc80",
        "\ud83d",
    ),
    *("²", "½", "Ⅷ", "٣", "ª", "漢", "\u0130", "\u0131", "\u017f", "\u212a", "ß", "\u0345", "\U0001d7d8", "\n", "\r\n"),
]
SPELLINGS = {"i": "iI\u0130\u0131", "s": "sS\u017f", "k": "kK\u212a"}


def regexes(patterns):
    """Yield each pattern with a regular expression for all of its places by the rules ignore_case and word."""
    for pattern in patterns:
        words = r"\s+".join(map(re.escape, re.split(r"\s+", pattern)))
        yield pattern, re.compile(rf"(?=(\b{words}\b))", re.IGNORECASE)


def found_by_re(compiled, text):
    """Return (pattern, start, end) of every match, sorted."""
    return sorted((pattern, *match.span(1)) for pattern, regex in compiled for match in regex.finditer(text))


def spelled(random, pattern):
    """Return `pattern` as a person might write it, correctly or nearly so."""
    letters = []
    for letter in pattern:
        if letter == " ":
            letters += random.choices(BLANKS, k=random.choice((0, 1, 1, 1, 2, 3)))
            continue
        letters.append(random.choice(SPELLINGS.get(letter.lower(), letter.lower() + letter.upper())))
        if random.random() < 0.03:
            letters.append(random.choice(BESIDE))
        if random.random() < 0.02:
            letters.pop()
    return "".join(letters)


def hard_line(random, patterns=KEYWORDS):
    parts = []
    for _ in range(random.randint(1, 6)):
        parts += random.choice(BESIDE), spelled(random, random.choice(patterns)), random.choice(BESIDE)
        if random.random() < 0.2:
            parts.append(spelled(random, random.choice(patterns))[: random.randint(0, 9)])
    return "".join(parts)
