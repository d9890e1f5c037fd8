"""A process in a terminal of its own."""

import os
import pty
import select
import threading
import time

from support.host import HANGS_S


class Terminal:
    """A process in a terminal of its own, and the text that it has written there."""

    def __init__(self, argv, env, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        self.seen = ""

    def until(self, words, seconds=HANGS_S):
        """Read until the words are in the text. Fails after `seconds`."""
        end = time.monotonic() + seconds
        while words not in self.seen:
            assert self.read(end), self.seen

    def wait(self, seconds=HANGS_S):
        """Read to the end; return the exit code."""
        end = time.monotonic() + seconds
        while self.read(end):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def read(self, end):
        """Read once, waiting until `end` (monotonic clock) at most; return False at the end of the output."""
        assert select.select([self.fd], (), (), max(0, end - time.monotonic()))[0], self.seen
        try:
            data = os.read(self.fd, 1000)
        except OSError:
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

    def drain(self):
        """Read in a thread what the process draws, so that it never has to wait for its terminal."""

        def read_all():
            while self.read(time.monotonic() + threading.TIMEOUT_MAX):
                pass

        threading.Thread(target=read_all, daemon=True).start()
