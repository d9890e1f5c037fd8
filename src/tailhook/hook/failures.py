"""What the person reads if a machine fails. A hook imports it only then."""

from tailhook.hook.answer import describe
from tailhook.machines import Verdict
from tailhook.stores.atomic import IS_LINK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRIED_AGAIN = "The next stop tries again: when this is mended, send the agent a prompt."


def failed(name: str, error: Exception) -> "Verdict[Any]":
    """Return the verdict of a machine that raised an exception: its state stays, and the person gets one line.

    With --announce it is also a message: a loop may have let the agent go. For a link in a project there is no message,
    because it was put there on purpose.
    """
    what = describe(error)
    line = f"tailhook: {name}: {what}. Its state was not changed; the agent may stop."
    is_link = isinstance(error, OSError) and error.errno == IS_LINK
    return Verdict("allow", what, warning=line, message="" if is_link else f"{line} {TRIED_AGAIN}")


def unsaved(path: str, error: OSError) -> "Verdict[Any]":
    """Return the verdict of a machine whose state could not be saved: the agent may stop, and the person gets one line.

    path: of the state.
    """
    what = describe(error).removeprefix(f"{path}: ")
    line = f"tailhook: {path}: the state could not be saved ({what}). The agent may stop."
    return Verdict("allow", f"the state could not be saved: {what}", warning=line, message=f"{line} {TRIED_AGAIN}")
