"""Hands `tailhook hook` on to the native client, if this installation has one."""

import os
from collections.abc import Sequence

from tailhook.pool.installation import CLIENT_FILE, client_folder, real_interpreter


def run_client(arguments: Sequence[str]) -> None:
    """Replace this process by the client; return if there is none. The client starts Python again if no pool runs."""
    if os.environ.get("TAILHOOK_NO_POOL") == "1":
        return
    try:
        client = f"{client_folder(real_interpreter())}/{CLIENT_FILE}"
        os.execv(client, [client, "hook", *arguments])  # noqa: S606 - our own program
    except OSError:
        return
