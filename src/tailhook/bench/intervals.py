"""Quantiles with their confidence intervals, and verdicts on a limit."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

CONFIDENCE = 0.95
P99 = 0.99  # the quantile
MIN_VALUES, MIN_P99_VALUES = 6, 368  # needed for a 95 % interval of the median and of the 99th percentile
MAX_HALF_WIDTH = 0.05  # of an interval, relative to its estimate; a wider one that contains a limit decides nothing

PASS, FAIL, NOISY, NOT_COUNTED = "pass", "fail", "noisy", "not counted"


class Estimate(NamedTuple):
    """A quantile of some values, and the ends of its interval."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval's width, relative to the value."""
        return (self.high - self.low) / 2 / self.value if self.value else math.inf


def estimate(values: Sequence[float], quantile: float = 0.5, confidence: float = CONFIDENCE) -> Estimate:
    """Return a quantile with the percentile interval of its bootstrap.

    Nothing is drawn at random: the distribution of an order statistic over all samples with replacement is a binomial
    one (Efron, "Bootstrap methods: another look at the jackknife", 1979, section 3). So the result is exact, and
    always the same.

    values: at least one.
    quantile: above 0, at most 1. The result is the smallest value that this part of the values does not exceed.

    >>> estimate([3.0, 1.0, 2.0, 5.0, 4.0]).value
    3.0
    """
    ordered = sorted(values)
    rank = max(1, math.ceil(quantile * len(ordered) - 1e-9))
    low, high = interval_ranks(rank, len(ordered), confidence)
    return Estimate(ordered[rank - 1], ordered[low - 1], ordered[high - 1])


@lru_cache(maxsize=1000)
def interval_ranks(rank: int, count: int, confidence: float) -> tuple[int, int]:
    """Return the ranks, from 1, of both ends of the interval of an order statistic."""
    tail = (1 - confidence) / 2
    ranks = range(1, count + 1)
    low = bisect_left(ranks, tail, key=lambda at: at_least(rank, count, at / count))
    high = bisect_left(ranks, 1 - tail, key=lambda at: at_least(rank, count, at / count))
    return ranks[low], ranks[min(high, count - 1)]


def at_least(successes: int, trials: int, chance: float) -> float:
    """Return the probability of that many successes or more, each with the same chance.

    >>> round(at_least(1, 2, 0.5), 9)
    0.75
    """
    if chance >= 1:
        return 1.0
    log_chance, log_rest = math.log(chance), math.log1p(-chance)
    log_all = math.lgamma(trials + 1)
    return min(
        1.0,
        sum(
            math.exp(
                log_all
                - math.lgamma(number + 1)
                - math.lgamma(trials - number + 1)
                + number * log_chance
                + (trials - number) * log_rest
            )
            for number in range(successes, trials + 1)
        ),
    )


def ratio_of(one: Estimate, other: Estimate) -> Estimate:
    """Return the ratio of two estimates of different runs, with its interval.

    On a logarithmic scale a ratio is a difference. The distances of its ends are the roots of the sums of squares of
    the two estimates' own distances (Zou and Donner, "Construction of confidence limits about effect measures",
    Statistics in Medicine 27, 2008, equation 3).

    one, other: all their numbers are finite and above 0.

    >>> ratio_of(Estimate(3.0, 3.0, 3.0), Estimate(2.0, 1.0, 2.0))
    Estimate(value=1.5, low=1.5, high=3.0)
    """
    value = one.value / other.value
    below = math.hypot(math.log(one.value / one.low), math.log(other.high / other.value))
    above = math.hypot(math.log(one.high / one.value), math.log(other.value / other.low))
    return Estimate(value, value * math.exp(-below), value * math.exp(above))


class RatioChange(NamedTuple):
    """This run's ratio divided by another run's: for the wall time, and for the undisturbed time."""

    wall: Estimate
    undisturbed: Estimate

    @property
    def is_noise(self) -> bool:
        """Whether one of the intervals contains 1: then other programs or chance may explain the change."""
        return any(found.low <= 1 <= found.high for found in self)


def change_since(
    before: Estimate, now: Estimate, undisturbed_before: Estimate | None, undisturbed_now: Estimate | None
) -> RatioChange:
    """Return the change of a ratio. If an undisturbed ratio is unknown, the wall time is used for both."""
    wall = ratio_of(now, before)
    if undisturbed_before is None or undisturbed_now is None:
        return RatioChange(wall, wall)
    if not 0 < undisturbed_now.low <= undisturbed_now.high < math.inf:
        return RatioChange(wall, wall)
    return RatioChange(wall, ratio_of(undisturbed_now, undisturbed_before))


def judge(found: Estimate, limit: float) -> str:
    """Return whether a value is within its limit: PASS, FAIL, or NOISY if the values do not show that.

    The lower end of the interval decides: above the limit it fails. A wide interval that contains the limit is noisy.
    """
    if found.low > limit:
        return FAIL
    if found.high <= limit or found.half_width <= MAX_HALF_WIDTH:
        return PASS
    return NOISY
