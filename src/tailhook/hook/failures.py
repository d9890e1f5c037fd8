"""What the person reads if a machine fails. A hook imports it only then."""

from tailhook.hook.answer import describe
from tailhook.machines import Verdict


def failed(name: str, error: Exception) -> "Verdict[None]":
    """Return the verdict of a machine that raised an exception: its state stays, and the person gets one line."""
    what = describe(error)
    return Verdict("allow", what, warning=f"tailhook: {name}: {what}. Its state was not changed; the agent may stop.")
