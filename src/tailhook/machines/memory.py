"""The memory machine: what of this session is worth saving before its agent stops?  (docs/machines/memory.md)

Pure: lines and counts in; scores and verdict out. Who reads the transcript is `tailhook.hook.memory`.
"""

from tailhook.machines import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

CATEGORIES = ("DECISION", "RUNBOOK", "CONSTRAINT", "TECH_DEBT", "PREFERENCE")  # those that lines are scored for
SUMMARY = "SESSION_SUMMARY"
THRESHOLDS = {**dict.fromkeys(CATEGORIES, 0.4), "CONSTRAINT": 0.5, SUMMARY: 0.6}
BOOSTED, MOST_BOOSTED = 0.5, 2
PLAIN, MOST_PLAIN = 0.3, 3
FULL = MOST_BOOSTED * BOOSTED + MOST_PLAIN * PLAIN
LINES_BEFORE, LINES_AFTER = 2, 1  # of a line, in which a booster counts for it
MAX_MESSAGES, FEWEST_MESSAGES, MOST_MESSAGES = 50, 10, 200
FLAG_SECONDS = 300  # within which a second stop is let go
LONGEST_LINE = 120  # characters of a line that are shown
# What a keyword is, by its number: twice its category's place, one more for a booster; or a negation.
NEGATION = 2 * len(CATEGORIES)
REACH = 14  # bytes from a negation to the keyword that it takes back
# ---- lines -------------------------------------------------------------------


class Line:
    """One line of a message, code removed, that holds keywords.

    number: its place among the message's lines.  text: UTF-8 bytes.  keywords: of each keyword, primary or booster, its
    number and where it stands in the text.
    """

    __slots__ = ("keywords", "number", "text")

    def __init__(self, number: int, text: bytes, keywords: "list[tuple[int, int, int]]") -> None:
        self.number = number
        self.text = text
        self.keywords = keywords

    def word(self, number: int) -> str:
        """The first keyword of that number, as the line has it; "" for none."""
        return next(
            (self.text[start:end].decode("utf-8", "replace") for found, start, end in self.keywords if found == number),
            "",
        )


class Hit:
    """A line that scored.

    line: Line.  message: its place.  keyword: str.  booster: str, "" for none.  share: of the 1.9 that are a whole
    score.
    """

    __slots__ = ("booster", "keyword", "line", "message", "share")

    def __init__(self, line: Line, message: int, keyword: str, booster: str, share: float) -> None:
        self.line = line
        self.message = message
        self.keyword = keyword
        self.booster = booster
        self.share = share


def hits_of(messages: "Sequence[Sequence[Line]]", category: str, several: bool = False) -> "Iterator[Hit]":
    """The lines that a category's score is made of, in the session's order.

    messages: their lines, the oldest first.  several: each keyword of a line counts, not the line once.
    """
    primary = 2 * CATEGORIES.index(category)
    boosted = plain = 0
    for message, lines in enumerate(messages):
        for place, line in enumerate(lines):
            times = occurrences(line, primary)
            if not times:
                continue
            around = lines[max(0, place - LINES_BEFORE) : place + 1 + LINES_AFTER]
            near = [one for one in around if -LINES_BEFORE <= one.number - line.number <= LINES_AFTER]
            booster = next(filter(None, (one.word(primary + 1) for one in near)), "")
            for _ in range(times if several else 1):
                share = 0.0
                if booster and boosted < MOST_BOOSTED:
                    boosted += 1
                    share = BOOSTED
                elif plain < MOST_PLAIN:
                    plain += 1
                    share = PLAIN
                yield Hit(line, message, line.word(primary), booster, share)


def score(hits: "Iterable[Hit]") -> "tuple[float, Hit | None]":
    """A category's score, and the best of its lines: the first beside a booster, else the first; None without lines.

    Goes no further than there is something to be won.
    """
    counts = {BOOSTED: 0, PLAIN: 0, 0.0: 0}
    best: Hit | None = None
    for hit in hits:
        counts[hit.share] += 1
        if best is None or (hit.booster and not best.booster):
            best = hit
        if counts[BOOSTED] == MOST_BOOSTED and counts[PLAIN] == MOST_PLAIN:
            break
    return min(1.0, (counts[BOOSTED] * BOOSTED + counts[PLAIN] * PLAIN) / FULL), best


def occurrences(line: Line, primary: int) -> int:
    """How often a line holds a keyword that no negation takes back; keywords that overlap are one."""
    found = [(start, end) for word, start, end in line.keywords if word == primary]
    if not found:
        return 0
    negated = [end for word, _, end in line.keywords if word == NEGATION]
    times, reached = 0, -1
    for start, end in found:
        if not any(0 <= start - before <= REACH for before in negated):
            times += start >= reached
            reached = max(reached, end)
    return times


def summary_score(tool_uses: int, tools: int, exchanges: int) -> float:
    """How much happened.  tools: distinct ones."""
    return min(1.0, tool_uses * 0.05 + tools * 0.1 + exchanges * 0.02)


# ---- the verdict -------------------------------------------------------------


class Facts:
    """What the transcript says since the session's last report.

    messages: lines of the last messages, the oldest first.  tool_uses, tools, exchanges: how many; tools are distinct
    ones.  several: see `score`.  thresholds: by category.  summarized: whether this session's summary was reported.
    """

    __slots__ = ("exchanges", "messages", "several", "summarized", "thresholds", "tool_uses", "tools")

    def __init__(
        self,
        messages: "Sequence[Sequence[Line]]",
        tool_uses: int = 0,
        tools: int = 0,
        exchanges: int = 0,
        several: bool = False,
        thresholds: "Mapping[str, float]" = THRESHOLDS,
        summarized: bool = False,
    ) -> None:
        self.messages = messages
        self.tool_uses = tool_uses
        self.tools = tools
        self.exchanges = exchanges
        self.several = several
        self.thresholds = thresholds
        self.summarized = summarized


def decide(facts: Facts) -> Verdict:
    """What is to be saved before the agent stops; of the verdict `state` is whether the summary is among it."""
    items = []
    present = {word for lines in facts.messages for line in lines for word, _, _ in line.keywords}
    for place, category in enumerate(CATEGORIES):
        if 2 * place not in present:
            continue
        points, best = score(hits_of(facts.messages, category, facts.several))
        if best and points >= facts.thresholds[category]:
            words = quoted(best.line.text.decode("utf-8", "surrogatepass"))
            items.append(f"- [{category}] {words} (score: {points:.2f})")
    points = summary_score(facts.tool_uses, facts.tools, facts.exchanges)
    summary = not facts.summarized and points > 0 and points >= facts.thresholds[SUMMARY]
    if summary:
        figures = f"{facts.tool_uses} tool uses, {facts.tools} tools, {facts.exchanges} exchanges"
        items.append(f"- [{SUMMARY}] {figures} (score: {points:.2f})")
    if not items:
        return Verdict("allow", "nothing to save")
    reason = "\n".join(
        (
            "The following items should be saved as memories before stopping:",
            *items,
            "",
            "Use the memory-management skill to save each item. After saving, you may stop.",
        )
    )
    return Verdict("block", f"{len(items)} to save", summary, reason)


# ---- configuration -----------------------------------------------------------


class Settings:
    """What `memory-config.json` says.  enabled: bool.  max_messages: int.  thresholds: float by category."""

    __slots__ = ("enabled", "max_messages", "thresholds")

    def __init__(self, config: object = None) -> None:
        """config: the file's JSON value; what is of a wrong type in it counts as absent, one by one."""
        section = config.get("triage") if isinstance(config, dict) else None
        section = section if isinstance(section, dict) else {}
        enabled = section.get("enabled")
        self.enabled = not (enabled is False or (isinstance(enabled, str) and enabled.strip().lower() == "false"))
        count = section.get("max_messages")
        if not isinstance(count, int) or isinstance(count, bool):
            count = MAX_MESSAGES
        self.max_messages = min(max(count, FEWEST_MESSAGES), MOST_MESSAGES)
        self.thresholds = dict(THRESHOLDS)
        given = section.get("thresholds")
        for name, value in given.items() if isinstance(given, dict) else ():
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
            if number and name.upper() in self.thresholds:
                self.thresholds[name.upper()] = min(max(value, 0.0), 1.0)


# ---- quoting -----------------------------------------------------------------
#
# Text from a transcript stays text: nothing in it may steer a terminal, hide from
# the reader, or give a secret away.

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


def quoted(line: str) -> str:
    """A line as the message shows it."""
    words = filter(None, map(shown, line.split()))
    kept, length = [], -1
    for word in masked(words):
        kept.append(word)
        length += 1 + len(word)
        if length > LONGEST_LINE:
            break
    cut = " ".join(kept)[:LONGEST_LINE].rstrip()
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


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
