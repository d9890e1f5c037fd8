"""The words of a reason about a command that has not run. Pure. A stop imports it only to block."""

from tailhook.machines import clip_field

MAX_SHELL_LINE_CHARS = 300  # of a shell line in a reason


def describe_missing(command: str, since: str, line: str, why: str) -> str:
    """Return the line of a reason: the missing command. If a run does not count: why, and what to run instead.

    since: what happened after its last successful run.
    line, why: the newest line since then that may have run the command, and why it does not count; "" without one.
    """
    command = clip_field(command)
    missing = f"- `{command}`: it has not run successfully since {since}."
    if not line:
        return missing
    pipe = ", or with `set -o pipefail;` in front" if why.endswith("behind a pipe") else ""
    why = clip_field(why, MAX_SHELL_LINE_CHARS)
    advice = f"Run `{command}` in a tool call of its own{pipe}."
    return f"{missing} `{show_line(line)}` does not count: {why}. {advice}"


def show_line(line: str) -> str:
    r"""Return a shell line for a reason: line ends as \n, and only the beginning of a long line."""
    shown = clip_field(line.strip().replace("\n", r"\n").replace("\t", " "), MAX_SHELL_LINE_CHARS + 1)
    return shown if len(shown) <= MAX_SHELL_LINE_CHARS else f"{shown[:MAX_SHELL_LINE_CHARS]}…"
