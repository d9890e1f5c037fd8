"""Shows a change of a hooks file to a person before it is written."""

import difflib

from tailhook.cli.output import coloured
from tailhook.hook.answer import plain
from tailhook.install import hooks
from tailhook.install.command import machines_of
from tailhook.install.hooks_file import HooksFile

MAX_SHOWN_EVENTS = 3  # more changed hooks than this are shown as a table


def describe_change(file: HooksFile, old: str, new: str) -> list[str]:
    """Return the lines that show a change of a file to a person: all of it, or a table of many hooks and one entry."""
    before, after = (
        {hook.event: (hook, hooks.entry_text(file, text, hook)) for hook in hooks.find_ours(file, text)}
        for text in (old, new)
    )
    changed = [event for event in file.events if before.get(event) != after.get(event)]
    if len(changed) <= MAX_SHOWN_EVENTS:
        return difference(old, new)
    lines = []
    for event in changed:
        sign = "+" if event not in before else "-" if event not in after else "±"
        text, (hook, _) = (new, after[event]) if event in after else (old, before[event])
        matcher = hooks.matcher_of(file, text, hook) or ""
        asked = ",".join(machines_of(hook.argv) or ["the configured machines"])
        lines.append(plain(f"{sign} {event:<20} {matcher:<8} {asked}").rstrip())
    texts = (found[changed[0]][1] if changed[0] in found else "" for found in (before, after))
    lines += ["", f"The entry for {changed[0]}; the others differ in what the table shows:", *difference(*texts)]
    others = [hooks.without_hooks(file, text) for text in (old, new)]
    rest = [] if all(hooks.is_empty(file, text) for text in others) else difference(*others)
    return [*lines, "", "Besides:", *rest] if rest else lines


def difference(old: str, new: str) -> list[str]:
    """Return the lines that are removed and added, with three lines around them, for a person."""
    colours = {"+": 32, "-": 31}
    lines = difflib.unified_diff(outdent(old), outdent(new), lineterm="", n=3)
    shown = [plain(line[:1] + line[1:].expandtabs(4)) for line in lines if not line.startswith(("---", "+++"))]
    return [coloured(line, colours[line[0]]) if line[:1] in colours else line for line in shown]


def outdent(text: str) -> list[str]:
    """Return the lines of a value from a file, without the indentation of its last line."""
    *others, last = text.splitlines() or [""]
    return [line.removeprefix(last[: len(last) - len(last.lstrip())]) for line in [*others, last]] if text else []
