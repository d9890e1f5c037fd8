"""Adds up the responses of a scan of the table usage, by day, model, project and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Any

from tailhook.fleet.columns import TOKEN_COLUMNS
from tailhook.fleet.prices import PriceList, Tokens

NEEDED = ("session_id", "agent_id", "project", "model", "timestamp", *TOKEN_COLUMNS)


class Total:
    """The sums of a group of responses.

    cost: in US dollars, of the models whose price is known.
    unpriced: how many responses are of other models.
    """

    __slots__ = ("cost", "responses", "tokens", "unpriced")

    def __init__(self) -> None:
        self.responses = self.unpriced = 0
        self.tokens = Tokens()
        self.cost = Decimal(0)

    def add(self, tokens: Tokens, cost: Decimal | None) -> None:
        """Add a response.  cost: None if its price is unknown."""
        self.responses += 1
        self.tokens = self.tokens.plus(tokens)
        self.unpriced += cost is None
        self.cost += cost or 0


def group_key(by: str, row: Any, zone: tzinfo | None) -> str | None:
    """Return the name of a row's group, or None if the row lacks what it is grouped by.

    by: one of USAGE_GROUPINGS (columns.py).
    zone: the time zone in which days begin; None for this computer's.
    """
    if by not in TIME_KEYS:
        return getattr(row, GROUP_COLUMNS[by]) or None
    return None if row.timestamp is None else TIME_KEYS[by](row.timestamp.astimezone(zone))


def week_of(time: datetime) -> str:
    """Return the week of ISO 8601, which begins on Monday.

    >>> week_of(datetime(2027, 1, 3))
    '2026-W53'
    """
    year, week, _ = time.isocalendar()
    return f"{year}-W{week:02}"


TIME_KEYS: dict[str, Callable[[datetime], str]] = {
    "day": lambda time: f"{time:%Y-%m-%d}",
    "week": week_of,
    "month": lambda time: f"{time:%Y-%m}",
}
GROUP_COLUMNS = {"model": "model", "project": "project", "session": "session_id", "agent": "agent_id"}


def add_up(
    rows: Iterable[Any], by: str, prices: PriceList | None, zone: tzinfo | None = None
) -> tuple[dict[str | None, Total], Total, dict[str | None, Total]]:
    """Return the totals of each group, sorted by name, the total of all, and those of models without a price.

    rows: with the columns NEEDED.
    by: one of USAGE_GROUPINGS (columns.py).
    prices: None if no costs are wanted: they are 0 then, and no model is without a price.
    zone: as for `group_key`.
    """
    groups: dict[str | None, Total] = {}
    unpriced: dict[str | None, Total] = {}
    whole = Total()
    for row in rows:
        tokens = Tokens(*(getattr(row, name) or 0 for name in TOKEN_COLUMNS))
        cost = Decimal(0) if prices is None else prices.cost(row.model, tokens)
        groups.setdefault(group_key(by, row, zone), Total()).add(tokens, cost)
        whole.add(tokens, cost)
        if cost is None:
            unpriced.setdefault(row.model, Total()).add(tokens, cost)
    return dict(sorted(groups.items(), key=name_order)), whole, dict(sorted(unpriced.items(), key=name_order))


def name_order(item: tuple[str | None, Total]) -> tuple[bool, str]:
    """Return what sorts groups: those without a name come last."""
    return (item[0] is None, item[0] or "")
