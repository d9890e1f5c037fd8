"""A server of the real tmux."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

from support.host import wait_until
from support.terminal import Terminal

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")


class Tmux:
    """A server of tmux with one session.

    folder: of its socket.
    config: the file of its configuration.
    """

    def __init__(self, folder, env, config="/dev/null"):
        self.folder = folder
        self.argv = [shutil.which("tmux"), "-S", str(folder / "socket"), "-f", str(config)]
        self.env = {**env, "TERM": "xterm", "PATH": env.get("PATH", os.environ["PATH"])}
        self("new-session", "-d", "-x", "80", "-y", "24", "cat")

    def __call__(self, *words):
        """Run a command of tmux; return what it prints."""
        done = subprocess.run([*self.argv, *words], env=self.env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def attach(self):
        """Show the session in a terminal; return that."""
        client = Terminal([*self.argv, "attach"], self.env, self.folder)
        client.drain()
        wait_until(lambda: self("list-clients"))
        return client


@contextmanager
def tmux_in(folder, env, config="/dev/null"):
    """Yield a running server, and end it."""
    server = Tmux(folder, env, config)
    try:
        yield server
    finally:
        subprocess.run([*server.argv, "kill-server"], env=server.env, capture_output=True, check=False)
