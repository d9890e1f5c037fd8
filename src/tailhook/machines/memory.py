"""The memory machine: is something of this session worth saving before its agent stops? (docs/machines/memory.md)

Pure: counting lines and some figures in; scores and verdict out. `tailhook.hook.memory` reads the transcript, and the
compiled core finds the lines (`tailhook._core.score_lines`).
"""

from tailhook.machines import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    # category: its place in CATEGORIES; message: its place; the line, its keyword and booster, and whether it counts
    # as boosted.
    ScoredLine = tuple[int, int, bytes, bytes, bytes, bool]

CATEGORIES = ("DECISION", "RUNBOOK", "CONSTRAINT", "TECH_DEBT", "PREFERENCE")  # the categories with scored lines
SUMMARY = "SESSION_SUMMARY"
THRESHOLDS = {**dict.fromkeys(CATEGORIES, 0.4), "CONSTRAINT": 0.5, SUMMARY: 0.6}
BOOSTED, MAX_BOOSTED = 0.5, 2  # share of a line with a booster, and how many such lines of a category count
PLAIN, MAX_PLAIN = 0.3, 3
WHOLE = MAX_BOOSTED * BOOSTED + MAX_PLAIN * PLAIN
DEFAULT_MESSAGES, MIN_MESSAGES, MAX_MESSAGES = 50, 10, 200
MAX_READ_BYTES = 16 << 20  # read back: ten times the size of 200 messages of real transcripts
MAX_TEXT_BYTES = 256 << 10  # scored text, of the newest messages first
FLAG_SECONDS = 300  # after a report, in which the next stop is allowed
MAX_LINE_CHARS = 120  # of a quoted line
# Hosts' texts in the user's name: commands and their output, notifications, interrupts, and the feedback of hooks.
NOT_WORDS = (
    b"<command-",
    b"<local-command-",
    b"<task-notification",
    b"<agent-notification",
    b"<bash-",
    b"<system-reminder",
    b"<user-memory-input",
    b"[Request interrupted",
    b"Stop hook feedback:",
    b"Operation stopped by hook:",
    b"Caveat: The messages below",
)
# Texts that the buttons and monitors of hosts' apps send. For this machine they are messages, although no person typed
# them.
NOT_TYPED = (b"<ci-monitor-event", b"<create-pr-command")
# The number of a keyword is twice its category's place, and that of a booster one more. A negation's comes after all.
NEGATION = 2 * len(CATEGORIES)
# Constants for building the compiled core (ext/tables.py).
CORE_NUMBERS = {
    "CATEGORIES": len(CATEGORIES),
    "NEGATION": NEGATION,
    "NUMBERS": NEGATION + 1,
    "LINES_BEFORE": 2,  # lines before and after a line where a booster counts for it
    "LINES_AFTER": 1,
    "MAX_BOOSTED": MAX_BOOSTED,
    "MAX_PLAIN": MAX_PLAIN,
    "NEGATION_REACH_BYTES": 14,  # from a negation to the keyword that it cancels
}


def share(line: "ScoredLine") -> float:
    """Return a line's share of its category's sum; a sum of 1.9 is the whole score."""
    return BOOSTED if line[5] else PLAIN


def score(lines: "Sequence[ScoredLine]") -> float:
    """Return a category's score, from 0 to 1.  lines: those that count for it."""
    return min(1.0, sum(map(share, lines)) / WHOLE)


def best(lines: "Iterable[ScoredLine]") -> "ScoredLine":
    """Return the line to quote for a category: the first with a booster near it, otherwise the first."""
    lines = iter(lines)
    first = next(lines)
    if first[4]:
        return first
    return next((line for line in lines if line[4]), first)


def is_of_person(words: bytes) -> bool:
    """Return whether the words of a user's message were not written by the host."""
    return bool(words) and not words.lstrip().startswith(NOT_WORDS)


def summary_score(tool_uses: int, tools: int, exchanges: int) -> float:
    """Return how much happened, from 0 to 1.

    tools: how many different ones.
    """
    return min(1.0, tool_uses * 0.05 + tools * 0.1 + exchanges * 0.02)


# ---- the verdict -------------------------------------------------------------


class Facts:
    """The facts in the transcript since the session's last report.

    lines: the lines of the last messages that count for a category, in the session's order.
    tool_uses: how many there were.
    tools: how many different tools were used.
    exchanges: how many there were.
    thresholds: by category.
    summarized: whether this session's summary was reported.
    """

    __slots__ = ("exchanges", "lines", "summarized", "thresholds", "tool_uses", "tools")

    def __init__(
        self,
        lines: "Sequence[ScoredLine]",
        tool_uses: int = 0,
        tools: int = 0,
        exchanges: int = 0,
        thresholds: "Mapping[str, float]" = THRESHOLDS,
        summarized: bool = False,
    ) -> None:
        self.lines = lines
        self.tool_uses = tool_uses
        self.tools = tools
        self.exchanges = exchanges
        self.thresholds = thresholds
        self.summarized = summarized

    def of(self, category: str) -> "list[ScoredLine]":
        """Return the lines that count for a category."""
        place = CATEGORIES.index(category)
        return [line for line in self.lines if line[0] == place]


def decide(facts: Facts) -> "Verdict[bool]":
    """Decide what to save before the agent stops. The verdict's change is whether this includes the summary."""
    items = []
    for category in CATEGORIES:
        lines = facts.of(category)
        if lines and (points := score(lines)) >= facts.thresholds[category]:
            words = quote_line(best(lines)[2].decode("utf-8", "surrogatepass"))
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


class MemorySettings:
    """The settings of `memory-config.json`.

    enabled: whether the machine decides at all.
    max_messages: how many messages are scored.
    thresholds: the score from which on a category is reported, by category.
    """

    __slots__ = ("enabled", "max_messages", "thresholds")

    def __init__(self, config: object = None) -> None:
        """Take the usable values; a value of a wrong type counts as absent.

        config: the file's JSON value.
        """
        # The section is called `triage` in this file's format; it has nothing to do with the triage machine.
        section = config.get("triage") if isinstance(config, dict) else None
        section = section if isinstance(section, dict) else {}
        enabled = section.get("enabled")
        self.enabled = not (enabled is False or (isinstance(enabled, str) and enabled.strip().lower() == "false"))
        count = section.get("max_messages")
        if not isinstance(count, int) or isinstance(count, bool):
            count = DEFAULT_MESSAGES
        self.max_messages = min(max(count, MIN_MESSAGES), MAX_MESSAGES)
        self.thresholds = dict(THRESHOLDS)
        given = section.get("thresholds")
        for name, value in given.items() if isinstance(given, dict) else ():
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
            if number and name.upper() in self.thresholds:
                self.thresholds[name.upper()] = min(max(value, 0.0), 1.0)


def quote_line(line: str) -> str:
    """Return a line as a quotation for the message."""
    from tailhook._core import preload  # here, as the core is built from this module

    preload("machines.secrets", "machines.quoting")  # only if something is quoted
    from tailhook.machines.quoting import plain_words

    shown = plain_words(line, MAX_LINE_CHARS, BACKTICK if line.isascii() else invisible_letters())
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


BACKTICK = {ord("`"): None}


def invisible_letters() -> "dict[int, None]":
    """Return the characters to leave out of a quoted line: backticks, joiners, fillers and selectors."""
    fillers = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x200C, 0x200D, 0x3164, 0xFFA0)
    return dict.fromkeys((*b"`", *fillers, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
