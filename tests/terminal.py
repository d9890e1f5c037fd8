"""A process in a terminal of its own."""

import os
import pty
import time


class Terminal:
    """A process in a terminal of its own, and what it wrote there."""

    def __init__(self, argv, env, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        self.seen = ""

    def until(self, words, seconds=30):
        """Read until the words are there."""
        end = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < end, self.seen
            try:
                self.seen += os.read(self.fd, 1000).decode(errors="replace")
            except OSError:  # the other end is closed
                assert words in self.seen, self.seen

    def wait(self):
        """Read to the end; the exit status."""
        try:
            while data := os.read(self.fd, 1000):
                self.seen += data.decode(errors="replace")
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
