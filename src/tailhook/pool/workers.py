"""The pool's shared memory: one entry for each worker.

A worker only writes its own entry, and the last byte belongs to the parent, so no lock is needed.
"""

import mmap

RESIDENT_WORKERS = 2  # that stay: while one answers, the other is ready, so no request waits for a fork
FREE, IDLE, BUSY = 0, 1, 2  # no worker has the entry; its worker waits for a request; its worker answers one
ENTRY_BYTES = 24  # the state (8), the end of its last request (8, ns), the number of answered requests (8)


class WorkerTable:
    """The entries of all workers.

    count: the largest number of workers.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.memory = mmap.mmap(-1, count * ENTRY_BYTES + 1)

    def state(self, number: int) -> int:
        """Return the state of a worker."""
        return self.memory[number * ENTRY_BYTES]

    def set_state(self, number: int, state: int) -> None:
        """Set the state of a worker."""
        self.memory[number * ENTRY_BYTES] = state

    def states(self) -> bytes:
        """Return the state of each worker, one byte each."""
        return self.memory[: self.count * ENTRY_BYTES : ENTRY_BYTES]

    @property
    def may_be_outdated(self) -> bool:
        """Whether the parent has seen a change in a watched folder, but has not checked it yet.

        Until then each worker checks for itself.
        """
        return self.memory[-1] != 0

    @may_be_outdated.setter
    def may_be_outdated(self, value: bool) -> None:
        self.memory[-1] = value

    def count_request(self, number: int, now_ns: int) -> int:
        """Note the end of a request; return how many requests this entry has had."""
        at = number * ENTRY_BYTES + 8
        total = self.number_at(at + 8) + 1
        self.memory[at : at + 16] = now_ns.to_bytes(8, "big") + total.to_bytes(8, "big")
        return total

    def count_requests(self) -> int:
        """Return how many requests all workers have answered."""
        return sum(self.number_at(number * ENTRY_BYTES + 16) for number in range(self.count))

    def last_request_ns(self) -> int:
        """Return when a request was last ended, 0 if there was none."""
        return max(self.number_at(number * ENTRY_BYTES + 8) for number in range(self.count))

    def number_at(self, at: int) -> int:
        """Return the number of eight bytes at a position."""
        return int.from_bytes(self.memory[at : at + 8], "big")
