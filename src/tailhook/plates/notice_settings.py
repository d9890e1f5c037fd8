"""The keys of `plates.notify` for the daemon's notices, from the user's own configuration.

Imports nothing heavy, because `tailhook doctor` needs it without the daemon's libraries.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast, get_args
from urllib.parse import urlsplit

from tailhook.hook import config
from tailhook.hook.payload import user_config

NoticeKind = Literal["waits", "finished", "stuck"]  # names of the boards' groups
NoticeFormat = Literal["ntfy", "slack"]

NOTICE_KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)
NOTICE_FORMATS: tuple[NoticeFormat, ...] = get_args(NoticeFormat)
QUIET_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


class NoticeSettings(NamedTuple):
    """How the user wants to be notified.

    command: a program with its arguments; empty for none.
    webhook: a URL; "" for none.
    form: of the webhook's body.
    kinds: which changes give a notice.
    quiet: the first minute of the day without notices, and the first minute with notices again; None for no such time.
    """

    command: tuple[str, ...] = ()
    webhook: str = ""
    form: NoticeFormat = "ntfy"
    kinds: tuple[NoticeKind, ...] = NOTICE_KINDS
    quiet: tuple[int, int] | None = None

    def is_quiet(self, minute: int) -> bool:
        """Return whether there are no notices now. minute: of the local day."""
        if self.quiet is None:
            return False
        start, end = self.quiet
        return start <= minute < end if start <= end else minute >= start or minute < end


def read_notice_settings() -> NoticeSettings:
    """Return the settings in the user's file. A project's file is never read. Values that cannot be used are absent."""
    return parse_settings(read_user_values())


def read_user_values() -> Mapping[str, Any]:
    """Return the usable values of the section `plates` in the user's file."""
    return config.read_sections(user_config(), config.user_bytes)["plates"]


def parse_settings(values: Mapping[str, Any]) -> NoticeSettings:
    """Return the settings in the section `plates`.

    values: its usable values, see `config.usable_values`.
    """
    form, kinds = values.get("notify.format"), values.get("notify.on", NOTICE_KINDS)
    webhook = str(values.get("notify.webhook", ""))
    return NoticeSettings(
        command=tuple(values.get("notify.command", ())),
        webhook=webhook if is_http_url(webhook) else "",
        form=cast("NoticeFormat", form) if form in NOTICE_FORMATS else "ntfy",
        kinds=tuple(kind for kind in NOTICE_KINDS if kind in kinds),
        quiet=parse_quiet_hours(str(values.get("notify.quiet", ""))),
    )


def check_settings(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a complaint for each value that cannot be used. None of them shows the webhook, which may hold a secret.

    values: as in `parse_settings`.
    """
    if "notify.webhook" in values and not is_http_url(values["notify.webhook"]):
        yield "plates.notify.webhook is not a URL that begins with https:// or http://, and is ignored"
    form = values.get("notify.format", "ntfy")
    if form not in NOTICE_FORMATS:
        yield f'plates.notify.format is {form!r}, which is unknown; "ntfy" is used'
    if unknown := set(values.get("notify.on", ())) - set(NOTICE_KINDS):
        yield f"plates.notify.on has unknown kinds: {', '.join(sorted(unknown))}"
    quiet = values.get("notify.quiet")
    if quiet is not None and parse_quiet_hours(quiet) is None:
        yield f'plates.notify.quiet is {quiet!r}, which is not like "22:00-07:00", and is ignored'


def is_http_url(url: str) -> bool:
    """Return whether a text is a URL of HTTP with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def parse_quiet_hours(words: str) -> tuple[int, int] | None:
    """Return two minutes of the day, or None if the text is not two times. Two equal times give None, too.

    >>> parse_quiet_hours("22:00-07:30")
    (1320, 450)
    """
    found = QUIET_HOURS.fullmatch(words)
    if not found:
        return None
    hours, minutes, end_hours, end_minutes = map(int, found.groups())
    start, end = hours * 60 + minutes, end_hours * 60 + end_minutes
    return (start, end) if start != end else None
