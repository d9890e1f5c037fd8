"""Adds up the responses of a scan of the table usage, by day, model, project and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from itertools import repeat

from tailhook._core import ArrowBatch
from tailhook.cli.local_time import in_zone
from tailhook.cli.prices import ONE, PriceList, Tokens
from tailhook.fleet.columns import PRICE_COLUMNS, TOKEN_COLUMNS

SumKey = tuple[str | None, str | None, int, Decimal]  # of responses that share a group and a price: see `sums_of`
HOUR_CHARS = len("2026-11-22T09")
REST_OF_HOUR = timedelta(minutes=59, seconds=59, microseconds=999_999)


class Total:
    """The sums of a group of responses.

    cost: in US dollars, of the models whose price is known.
    unpriced: the number of responses of other models.
    without_input: the number of responses without a number of input tokens.
    """

    __slots__ = ("cost", "responses", "tokens", "unpriced", "without_input")

    def __init__(self) -> None:
        self.responses = self.unpriced = self.without_input = 0
        self.tokens = Tokens()
        self.cost = Decimal(0)

    @property
    def is_unpriced(self) -> bool:
        """Whether there are responses, all of them without a known price."""
        return 0 < self.responses == self.unpriced

    def add(self, responses: int, tokens: Tokens, cost: Decimal | None, without_input: int = 0) -> None:
        """Add responses.  tokens: of all of them.  cost: None if their price is unknown.  without_input: see above."""
        self.responses += responses
        self.without_input += without_input
        self.tokens = self.tokens.plus(tokens)
        if cost is None:
            self.unpriced += responses
        else:
            self.cost += cost


class TimeNames:
    """The names of the groups of times, remembered by the hour.

    In zones that differ from UTC by 30 or 45 minutes, a day begins within an hour of UTC. The times of such an hour are
    looked at one by one.
    """

    def __init__(self, by: str, zone: tzinfo | None) -> None:
        """by: one of TIME_KEYS. zone: for the beginning of days; None for this computer's."""
        self.key, self.zone = TIME_KEYS[by], zone
        self.hours: dict[str, str | None] = {}  # None: both ends of the hour are in other groups

    def names(self, times: Iterable[str | None]) -> list[str | None]:
        """Return the names of the groups of times. times: as for `name`; None has the name None."""
        hours = self.hours
        return [time and (hours.get(time[:HOUR_CHARS]) or self.name(time)) for time in times]

    def name(self, time: str) -> str:
        """Return the name of a time's group. time: a text from ArrowBatch."""
        hour = time[:HOUR_CHARS]
        if hour not in self.hours:
            first = datetime.fromisoformat(f"{hour}:00:00+00:00")
            names = {self.name_of(first), self.name_of(first + REST_OF_HOUR)}
            self.hours[hour] = names.pop() if len(names) == 1 else None
        return self.hours[hour] or self.name_of(datetime.fromisoformat(f"{time[:-1]}+00:00"))

    def name_of(self, time: datetime) -> str:
        """Return the name of an aware time's group. One at the edge of the calendar is named in UTC: see `in_zone`."""
        return self.key(in_zone(time, self.zone))


def week_of(time: datetime) -> str:
    """Return the week of ISO 8601. It begins on Monday.

    >>> week_of(datetime(2027, 1, 3))
    '2026-W53'
    """
    year, week, _ = time.isocalendar()
    return f"{year:04}-W{week:02}"


TIME_KEYS: dict[str, Callable[[datetime], str]] = {
    "day": lambda time: time.date().isoformat(),
    "week": week_of,
    "month": lambda time: time.date().isoformat()[:7],
}
GROUP_COLUMNS = {"model": "model", "project": "project", "session": "session_id", "agent": "agent_id"}


def total_columns(by: str) -> tuple[str, ...]:
    """Return the columns of the table usage that `add_up` needs.  by: one of USAGE_GROUPINGS (columns.py).

    For costs it needs PRICE_COLUMNS, too.
    """
    return tuple(dict.fromkeys((GROUP_COLUMNS.get(by, "timestamp"), "model", *TOKEN_COLUMNS)))


def add_up(
    batches: Iterable[ArrowBatch], by: str, prices: PriceList | None, zone: tzinfo | None = None
) -> tuple[dict[str | None, Total], Total, dict[str | None, Total]]:
    """Return the totals of each group, sorted by name, the total of all, and those of models without a price.

    If a response lacks the grouping value, it belongs to the group None.

    batches: with the columns of `total_columns`. Without PRICE_COLUMNS, tokens written to a cache cost the price for
        five minutes, and all responses count as of usual speed and region.
    by: one of USAGE_GROUPINGS (columns.py).
    prices: None if no costs are wanted: they are 0 then, and no model is without a price.
    zone: the time zone in which days begin; None for this computer's.
    """
    groups: dict[str | None, Total] = {}
    unpriced: dict[str | None, Total] = {}
    whole = Total()
    for (name, model, size, factor), sums in sums_of(batches, by, prices, zone).items():
        responses, without_input, *counts, for_an_hour = sums
        tokens = Tokens(*counts)
        cost = Decimal(0) if prices is None else prices.cost(model, tokens, size, for_an_hour, factor)
        for total in (groups.setdefault(name, Total()), whole):
            total.add(responses, tokens, cost, without_input)
        if cost is None:
            unpriced.setdefault(model, Total()).add(responses, tokens, cost)
    return dict(sorted(groups.items(), key=name_order)), whole, dict(sorted(unpriced.items(), key=name_order))


def sums_of(
    batches: Iterable[ArrowBatch], by: str, prices: PriceList | None, zone: tzinfo | None
) -> Mapping[SumKey, list[int]]:
    """Return the sums of responses with the same group and price: only the sums have to be priced.

    The keys are the name of the group, the model, and the results of `PriceList.size_passed` and `PriceList.factor`.
    The values are the number of responses, of responses without input tokens, of tokens, and of tokens that stay in a
    cache for an hour. The other parameters are those of `add_up`.
    """
    sums: dict[SumKey, list[int]] = {}
    times = TimeNames(by, zone) if by in TIME_KEYS else None
    for batch in batches:
        columns = dict(zip(batch.names, batch.columns(times_as_text=True), strict=True))
        names = columns[GROUP_COLUMNS.get(by, "timestamp")]
        if times is not None:
            names = times.names(names)
        counts = [
            [count or 0 for count in columns[name]] if None in columns[name] else columns[name]
            for name in TOKEN_COLUMNS
        ]
        if PRICE_COLUMNS[0] in columns:
            pairs = zip(columns[PRICE_COLUMNS[0]], counts[-1], strict=True)
            counts.append([min(for_an_hour or 0, written) for for_an_hour, written in pairs])
        models = columns["model"]
        keys: Iterable[SumKey] = zip(names, models, repeat(0), repeat(ONE))
        if prices is not None:
            prompts = map(sum, zip(counts[0], *counts[2:4], strict=True))
            modes = (columns.get(name, repeat(None)) for name in PRICE_COLUMNS[1:])
            factors = map(prices.factor, models, *modes)
            keys = zip(names, models, map(prices.size_passed, models, prompts), factors, strict=True)
        # The places of each key first: `sum` then adds up a column without a loop in Python.
        places: dict[SumKey, list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, []).append(place)
        for (name, model, size, factor), here in places.items():
            found = sums.setdefault((name or None, model, size, factor), [0] * 7)
            found[0] += len(here)
            if None in columns[TOKEN_COLUMNS[0]]:
                found[1] += sum(columns[TOKEN_COLUMNS[0]][place] is None for place in here)
            for number, column in enumerate(counts, 2):
                found[number] += sum(map(column.__getitem__, here))
    return sums


def name_order(item: tuple[str | None, Total]) -> tuple[bool, str]:
    """Return a sort key for groups: groups without a name come last."""
    return (item[0] is None, item[0] or "")
