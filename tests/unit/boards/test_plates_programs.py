"""Programs that the daemon runs for a bounded time."""

import asyncio
import gc
import os

import pytest

from tailhook.plates.programs import run_program


def test_a_run_that_is_cancelled_ends_its_program_and_leaves_no_error_behind(tmp_path):
    """The daemon cancels it at its own end. asyncio would print an exception that is not taken."""
    faults = []

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        running = asyncio.create_task(run_program(["sh", "-c", "echo $$ > pid; sleep 600"], {}, 600, folder=tmp_path))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        del running
        gc.collect()

    asyncio.run(run())
    assert faults == []


def test_a_run_that_is_cancelled_while_it_ends_its_program_waits_for_that(monkeypatch):
    """As if the daemon ended at that moment. asyncio would report a program that ends after the loop was closed."""
    kill, found = os.killpg, []

    async def run():
        async def cancel_and_kill(pid, number):
            running.cancel()
            for _ in range(20):  # steps of the loop, in which a cancelled run would end
                await asyncio.sleep(0)
            found.append(running.done())
            kill(pid, number)

        monkeypatch.setattr(os, "killpg", lambda *what: found.append(asyncio.create_task(cancel_and_kill(*what))))
        running = asyncio.create_task(run_program(["sleep", "600"], {}, 0))
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(run())
    assert found[1:] == [False]


def test_a_program_that_takes_too_long_is_killed_with_its_children(tmp_path):
    """The child has the output open: the run ends, so it has ended, too."""

    async def run():
        with pytest.raises(TimeoutError):
            await run_program(["sh", "-c", "sleep 600 & sleep 600"], {}, 0.01, max_output_bytes=10)
        return await run_program(
            ["sh", "-c", "echo abcdef; echo wrong >&2; cat; exit 3"],
            {},
            600,
            given=b"x" * 10**6,
            max_output_bytes=8,
            reads_errors=True,
        )

    assert asyncio.run(run()) == (3, b"abcdef\nx", b"wrong\n")
