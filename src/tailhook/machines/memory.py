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


def quoted(line: str) -> str:
    """A line as the message shows it."""
    from tailhook.machines.quoting import plain_words  # loaded where something is reported

    shown = plain_words(line, LONGEST_LINE)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
