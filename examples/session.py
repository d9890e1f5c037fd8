"""A made-up session, as Claude Code writes it: python examples/session.py FILE. The README's pictures show it."""

import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

BEGIN = datetime(2026, 3, 2, 9, 4, tzinfo=UTC)
MODEL = "claude-sonnet-4-5"
PROMPTS = (
    "The coupon test fails on CI. Please find out why, and make it pass.",
    "Now let two coupons on one order be an error, with a test.",
    "Also update the page about coupons, and run everything once more.",
)
LAST_WORDS = """\
All tests pass. We decided to reject a second coupon in `Cart.add`, because the
total was rounded twice otherwise. The error on CI came from the time zone.

The test writes the end of the loop itself, so that the hook can be tried:

```python
def test_the_last_words():
    assert last_words() == "<loop-done>COMPLETE</loop-done>"
```

Until the page was ready, `<loop-done>COMPLETE</loop-done>` would have been too early.
One limitation is left: a gift card cannot be combined with a coupon.

<loop-done>COMPLETE</loop-done>
"""


class Writer:
    """Makes the records of a session. Each takes some seconds of its time."""

    def __init__(self) -> None:
        self.random = random.Random(7)
        self.now = BEGIN
        self.count = 0

    def record(self, kind: str, seconds: float, **fields: Any) -> str:
        """Return the line of a record.

        seconds: since the record before it.
        """
        self.now += timedelta(seconds=seconds)
        self.count += 1
        stamp = self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = {"type": kind, "uuid": f"u-{self.count}", "timestamp": stamp, "sessionId": "made-up"}
        return f"{json.dumps({**head, 'cwd': '/home/me/shop', 'version': '2.1.329', **fields})}\n"

    def answer(self, seconds: float, **block: Any) -> str:
        """Return the record of one block of the agent's message."""
        message = {"id": f"m-{self.count}", "role": "assistant", "model": MODEL, "content": [block]}
        return self.record("assistant", seconds, message=message)

    def turn(self, prompt: str, steps: int) -> Iterator[str]:
        """Yield a prompt and the agent's steps."""
        yield self.record("user", 20, message={"role": "user", "content": prompt})
        yield self.record("attachment", 0.1, attachment={"type": "files", "content": "cart.py\n" * 300})
        for _ in range(steps):
            yield self.answer(self.random.uniform(3, 25), type="thinking", thinking="...", signature="s" * 900)
            if self.random.random() < 0.3:
                yield self.answer(2, type="text", text="I read the test first. " * self.random.randint(2, 20))
            name = self.random.choice(("Bash", "Read", "Read", "Edit", "Grep"))
            use = f"t-{self.count}"
            given = {"command": "make test", "new_string": "x" * self.random.randint(50, 2500)}
            yield self.answer(3, type="tool_use", id=use, name=name, input=given)
            shown = "cart.py: ok\n" * int(self.random.lognormvariate(4.2, 1.1))
            result = {"type": "tool_result", "tool_use_id": use, "content": shown}
            yield self.record("user", self.random.uniform(1, 40), message={"role": "user", "content": [result]})


def make_session() -> Iterator[str]:
    """Yield the lines of the session."""
    writer = Writer()
    yield from writer.turn(PROMPTS[0], 42)
    writer.now += timedelta(minutes=47)
    yield from writer.turn(PROMPTS[1], 30)
    metadata = {"trigger": "auto", "preTokens": 155000}
    yield writer.record("system", 30, subtype="compact_boundary", compactMetadata=metadata)
    summary = {"role": "user", "content": "The session so far: " + "the test of the coupons was mended. " * 250}
    yield writer.record("user", 1, isCompactSummary=True, message=summary)
    yield from writer.turn(PROMPTS[2], 24)
    yield writer.answer(12, type="text", text=LAST_WORDS)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("".join(make_session()), encoding="utf-8")
