"""Sends notices: to the user's command, and to a webhook. Each has a bounded time, and none raises."""

import asyncio
import json
import logging
import os
from base64 import b64encode
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.plates.notice_settings import NoticeFormat, NoticeSettings
from tailhook.plates.notices import PlateNotice
from tailhook.plates.programs import run_program

log = logging.getLogger("tailhook.plates")

SEND_TIMEOUT_S = 10.0  # of a command and of a webhook
SLACK_LETTERS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}  # otherwise a text such as <!channel> is a command to Slack


class NoticeSendingError(TailhookError):
    """A notice could not be sent."""


class Courier:
    """Sends notices, and logs a failure unless it repeats the last one.

    failures: of each target whose last notice failed.
    """

    def __init__(self, failures: dict[str, str]) -> None:
        self.failures = failures

    async def send(self, notices: Sequence[PlateNotice], settings: NoticeSettings) -> None:
        """Send notices to every target that the user wants. Returns when all are sent or have failed."""
        works: list[Awaitable[None]] = []
        for notice in notices:
            if settings.command:
                works.append(self.watch("command", run_notice_command(settings.command, notice)))
            if settings.webhook:
                works.append(self.watch("webhook", call_webhook(settings.webhook, settings.form, notice)))
        await asyncio.gather(*works)

    async def watch(self, target: str, work: Awaitable[None]) -> None:
        """Wait for a notice to be sent, and log how that failed."""
        try:
            await work
            self.failures.pop(target, None)
        except Exception as error:  # no notice ends the daemon
            words = (describe(error) if isinstance(error, OSError) else str(error)) or type(error).__name__
            if self.failures.get(target) != words:
                self.failures[target] = words
                log.warning("plates.notify.%s failed: %s", target, words)


async def run_notice_command(argv: Sequence[str], notice: PlateNotice) -> None:
    """Run the user's command, with the notice in its environment and as JSON on its stdin.

    Nothing of a session is in its arguments: other users can see these, and a text can look like an option. The command
    runs in the user's home folder. If it takes too long, it and its children are killed.

    Raises NoticeSendingError and OSError.
    """
    fields = {**notice._asdict(), "host": os.uname().nodename}
    variables = {f"TAILHOOK_NOTICE_{name.upper()}": fields[name] for name in ("kind", "title", "text")}
    line = [str(Path(argv[0]).expanduser()), *argv[1:]]
    given = json.dumps(fields).encode()
    try:
        end = await run_program(line, variables, SEND_TIMEOUT_S, given=given, folder=Path.home())
    except TimeoutError:
        raise NoticeSendingError(f"it took longer than {SEND_TIMEOUT_S:.0f} seconds, and was killed") from None
    if end.status:
        raise NoticeSendingError(f"exit status {end.status}")


async def call_webhook(url: str, form: NoticeFormat, notice: PlateNotice) -> None:
    """Send a notice by POST. Follows no redirect and reads no body of an answer.

    Raises NoticeSendingError and the errors of httpx. None of them has the URL, which may hold a secret.
    """
    try:
        status = await asyncio.wait_for(post(url, write_request(form, notice)), SEND_TIMEOUT_S)
    except TimeoutError:
        raise NoticeSendingError(f"no answer within {SEND_TIMEOUT_S:.0f} seconds") from None
    if not 200 <= status < 300:
        raise NoticeSendingError(f"HTTP status {status}")


async def post(url: str, request: dict[str, Any]) -> int:
    """Send a request and return the status of its answer."""
    import httpx  # most daemons send nothing

    client = await asyncio.to_thread(httpx.AsyncClient)  # reads the certificates
    async with client, client.stream("POST", url, **request) as answer:
        return answer.status_code


def write_request(form: NoticeFormat, notice: PlateNotice) -> dict[str, Any]:
    """Return the headers and the body of a webhook's request, as arguments of httpx."""
    if form == "slack":
        words = f"{notice.title}\n{notice.text}"
        return {"json": {"text": "".join(SLACK_LETTERS.get(letter, letter) for letter in words)}}
    title = notice.title if notice.title.isascii() else f"=?UTF-8?B?{b64encode(notice.title.encode()).decode()}?="
    headers = {"Title": title, "Content-Type": "text/plain; charset=utf-8"}  # RFC 2047, which ntfy decodes
    return {"headers": headers, "content": notice.text.encode()}
