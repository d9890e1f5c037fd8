"""What responses cost, by a price list of LiteLLM (model_prices_and_context_window.json). None is built in."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from tailhook.errors import TailhookError

# The names of a token's price in the list, in the order of `Tokens`.
RATES = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
# The price of tokens that are written to a cache and stay there for an hour. The last of RATES is for five minutes.
HOUR_RATE = "cache_creation_input_token_cost_above_1hr"
# The list has a model under its name, or behind the name of the company that sells it: these come first.
MAKERS = ("anthropic", "openai", "gemini", "github_copilot")
TIER = re.compile(r"_above_(\d{1,9})k_tokens$")
PRICE = re.compile(rf"(?:{'|'.join((*RATES, HOUR_RATE))})(?:{TIER.pattern})?")
NO_REGIONS = ("", "global", "not_available")  # of inference: they have no price of their own
ONE = Decimal(1)
MAX_PRICE = 1_000_000  # US dollars of a token; the dearest models take less than a thousandth of one


class PriceError(TailhookError):
    """A price list cannot be used."""


class Tokens(NamedTuple):
    """Tokens of one or several responses."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_creation: int = 0

    def plus(self, other: Tokens) -> Tokens:
        """Return the sums."""
        return Tokens(*(one + more for one, more in zip(self, other, strict=True)))


class PriceList:
    """The prices of models, in US dollars."""

    def __init__(self, models: Mapping[str, Any]) -> None:
        """models: the members of the list, by name. A model without a price, or with an invalid one, is left out."""
        self.models = {
            name: facts for name, facts in select_priced(models).items() if all(map(is_price, price_values(facts)))
        }
        self.sizes_of: dict[str | None, Sequence[int]] = {}
        self.factors: dict[tuple[str | None, str | None, str | None], Decimal] = {}
        self.sold_as: dict[str, str] = {}
        for name in sorted(self.models, reverse=True):
            self.sold_as[name.rpartition("/")[2]] = name

    def facts(self, model: str) -> Mapping[str, Any] | None:
        """Return what the list has of a model, or None."""
        for name in (model, *(f"{maker}/{model}" for maker in MAKERS), self.sold_as.get(model, "")):
            if name in self.models:
                return self.models[name]
        return None

    def sizes(self, model: str | None) -> Sequence[int]:
        """Return the thousands of tokens beyond which a prompt has other prices, in ascending order."""
        if model not in self.sizes_of:
            facts = (None if model is None else self.facts(model)) or {}
            found = (TIER.search(name) for name in facts if name.startswith(RATES[0]))
            self.sizes_of[model] = sorted({int(one[1]) for one in found if one})
        return self.sizes_of[model]

    def size_passed(self, model: str | None, prompt: int) -> int:
        """Return the greatest of the model's sizes that a prompt exceeds, in thousands of tokens, or 0.

        prompt: its tokens, with those from and for a cache.
        """
        passed = 0
        for size in self.sizes(model):
            if prompt > size * 1000:
                passed = size
        return passed

    def factor(self, model: str | None, speed: str | None, region: str | None) -> Decimal:
        """Return by what the cost of a model's responses is multiplied.

        The list has the factors under `provider_specific_entry`, "fast" for the fast mode and others by the region.
        They multiply the price of every token, also of those read from a cache or written to it. LiteLLM's own costs
        left these out until its pull request 38378.

        speed, region: `speed` and `inference_geo` of the response's usage.
        """
        key = (model, speed, region)
        if key not in self.factors:
            facts = None if model is None else self.facts(model)
            factors = None if facts is None else facts.get("provider_specific_entry")
            names = [(region or "").lower(), *(["fast"] if speed == "fast" else [])]
            known = [factors.get(name) for name in names if name not in NO_REGIONS] if isinstance(factors, dict) else []
            self.factors[key] = prod((Decimal(str(one)) for one in known if is_price(one)), start=Decimal(1))
        return self.factors[key]

    def cost(
        self, model: str | None, tokens: Tokens, size: int = 0, for_an_hour: int = 0, factor: Decimal = ONE
    ) -> Decimal | None:
        """Return the price of tokens, or None if the list lacks the model or the price of the tokens that it wrote.

        for_an_hour: how many of `tokens.cache_creation` stay in the cache for an hour; the others stay for five
            minutes.
        size: what `size_passed` returns for the prompts, which have higher prices if they are long.
        factor: what `factor` returns for the responses.

        >>> PriceList({"m": {"input_cost_per_token": 3e-06, "output_cost_per_token": 15e-06}}).cost("m", Tokens(10, 2))
        Decimal('0.000060')
        """
        facts = None if model is None else self.facts(model)
        if facts is None or (tokens.output and RATES[1] not in facts):
            return None
        ending = f"_above_{size}k_tokens" if size else ""
        counts = (*tokens._replace(cache_creation=tokens.cache_creation - for_an_hour), for_an_hour)
        names = (*RATES, HOUR_RATE)
        prices = (count * price_of(facts, name, ending) for count, name in zip(counts, names, strict=True))
        return factor * sum(prices, Decimal(0))


def select_priced(models: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the members of a list that name the price of a token, without what is null in them."""
    found = {
        name: {key: value for key, value in facts.items() if value is not None}
        for name, facts in models.items()
        if isinstance(facts, dict)
    }
    return {name: facts for name, facts in found.items() if RATES[0] in facts}


def price_values(facts: Mapping[str, Any]) -> list[Any]:
    """Return the values of a model's price fields."""
    return [value for name, value in facts.items() if PRICE.fullmatch(name)]


def is_price(value: object) -> bool:
    """Return whether a value of the list is a price: a number that is not negative, infinite or absurd."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and 0 <= value <= MAX_PRICE


def price_of(facts: Mapping[str, Any], name: str, ending: str) -> Decimal:
    """Return the price of a token. Without a price for a cache's tokens, the price of a prompt's other tokens counts.

    Without a price for an hour in the cache, the price for five minutes counts.
    """
    names = [name]
    if name == HOUR_RATE:
        names.append(RATES[3])
    if name != RATES[1]:
        names.append(RATES[0])
    for key in (f"{one}{end}" for one in names for end in (ending, "")):
        if key in facts:
            return Decimal(str(facts[key]))
    return Decimal(0)


def read_prices(path: str | os.PathLike[str]) -> PriceList:
    """Read a price list. Raises OSError, and PriceError if the file is not such a list."""
    try:
        found = json.loads(Path(path).read_bytes(), parse_float=Decimal)
    except ValueError as error:
        raise PriceError(f"{os.fspath(path)} is not valid JSON: {error}") from None
    except RecursionError:
        raise PriceError(f"{os.fspath(path)} is not a price list: its JSON is nested too deeply") from None
    models = select_priced(found if isinstance(found, dict) else {})
    if not models:
        advice = "Give LiteLLM's model_prices_and_context_window.json"
        raise PriceError(f"{os.fspath(path)} is not a price list: it has no prices of tokens. {advice}")
    for name, facts in models.items():
        if any(isinstance(value, int | Decimal) and value > MAX_PRICE for value in price_values(facts)):
            raise PriceError(f"{os.fspath(path)} is not a price list: {name} costs more than ${MAX_PRICE:,} a token")
    return PriceList(models)
