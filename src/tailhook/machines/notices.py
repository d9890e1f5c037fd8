"""What a person reads in one session about a loop of another session.

The machines of loops import it only for that.
"""

from tailhook.machines import CLAIM, clip_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_OWNER_CHARS = 40  # characters of a session's id in a notice; those of the known hosts have 36


def name_owner(owners: "Iterable[object]", loop: str, group: str) -> str:
    """Return the notice for the person in a session that a live loop does not belong to; "" if it has no session yet.

    owners: as for `owns`.
    loop: the loop, for the person.
    group: the commands of its machine.
    """
    owner = next(filter(None, map(known_session, owners)), None)
    if owner is None:
        return ""
    whose = clip_field(owner, MAX_OWNER_CHARS)
    return f"tailhook: {loop} belongs to session {whose}. To continue it in this session: tailhook {group} adopt"


def known_session(owner: object) -> str | None:
    """Return the id of a loop's session, None if it has none yet."""
    return owner if isinstance(owner, str) and owner not in ("", CLAIM) else None
