"""Prices of a model's tokens: four of them, from the config or from the table of genai-prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from ragauge.contract.checks import is_number, shown
from ragauge.contract.errors import ConfigError
from ragauge.contract.extras import require_extra
from ragauge.contract.usage import Usage

AUTO = "auto"
_NEEDED, _FURTHER = ("prompt", "completion"), ("cached", "written")
_MOST_USD = 10**9
_WITHOUT = "or price: null, for calls without costs"
_FORM = "{prompt: ..., completion: ...}, with cached and written where they differ from prompt"


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens.

    cached is the price of prompt tokens that the server serves from its cache; written, of those that it writes to it.
    table: the name and date of the list that the prices are from; "" where the config gives them.
    """

    prompt: float
    completion: float
    cached: float
    written: float
    table: str = ""

    @classmethod
    def of(cls, price: Any, model: str, address: str | None = None) -> Price | None:
        """The prices of a config: a mapping, auto, or null. ConfigError for any other.

        model, address: by which auto finds the model in the table.
        """
        if price is None:
            return None
        if price == AUTO:
            return _of_table(model, address)
        allowed = {*_NEEDED, *_FURTHER}
        if (
            not isinstance(price, Mapping)
            or not {*_NEEDED} <= {*price} <= allowed
            or not all(is_number(value) and 0 <= value <= _MOST_USD for value in price.values())
        ):
            given = {n: shown(v) for n, v in price.items()} if isinstance(price, Mapping) else shown(price)
            raise ConfigError(
                f"price: {given} is not {_FORM}, in USD per million tokens, 0 to {_MOST_USD:,}; nor auto, nor null"
            )
        return cls._with({name: float(value) for name, value in price.items()})

    @classmethod
    def _with(cls, given: Mapping[str, float], table: str = "") -> Price:
        prompt = given["prompt"]
        cached, written = (given.get(name, prompt) for name in _FURTHER)
        return cls(prompt, given["completion"], cached, written, table)

    def cost(self, usage: Usage) -> float:
        """US dollars of these tokens; counts that are not known are 0."""
        cached, written = usage.cached_tokens or 0, usage.written_tokens or 0
        prompt = (usage.prompt_tokens or 0) - cached - written
        of_prompt = prompt * self.prompt + cached * self.cached + written * self.written
        return (of_prompt + (usage.completion_tokens or 0) * self.completion) / 1e6

    def times(self, factor: float) -> Price:
        """All prices times a factor."""
        prompt, completion, cached, written = (
            factor * price for price in (self.prompt, self.completion, self.cached, self.written)
        )
        return Price(prompt, completion, cached, written, self.table)

    @property
    def dearest(self) -> Price:
        """The prices of the worst case: every token of the prompt at the highest that one can cost."""
        most = max(self.prompt, self.cached, self.written)
        return Price(most, self.completion, most, most)

    def __str__(self) -> str:
        of = ", ".join(f"{name} {getattr(self, name):g}" for name in ("prompt", "cached", "written", "completion"))
        return f"{of} USD per million tokens" + (f" ({self.table})" if self.table else "")


def _of_table(model: str, address: str | None) -> Price:
    """The prices of a model in genai-prices, for a request sent now. ConfigError without a fixed price."""
    require_extra("price=auto", "genai_prices")
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import TieredPrices

    try:
        provider, found = get_snapshot().find_provider_model(model, None, None, address)
    except LookupError:
        where = f" at {address}" if address else ""
        raise ConfigError(f"price=auto: no price of {model}{where} is known; give price: {_FORM}; {_WITHOUT}") from None
    now = datetime.now(UTC)
    table = found.get_prices(now)
    names = {
        "prompt": "input_mtok", "completion": "output_mtok",
        "cached": "cache_read_mtok", "written": "cache_write_mtok",
    }  # fmt: skip
    told = {name: price for name, key in names.items() if (price := getattr(table, key, None)) is not None}
    tiers = [tier.start for price in told.values() if isinstance(price, TieredPrices) for tier in price.tiers]
    flat = {n: float(price.base if isinstance(price, TieredPrices) else price) for n, price in told.items()}
    if tiers:
        given = ", ".join(f"{name}: {price:g}" for name, price in flat.items())
        raise ConfigError(
            f"price=auto: {found.id} has other prices for prompts above {min(tiers):,} tokens; "
            f"below them it is price={{{given}}}"
        )
    if not {*_NEEDED} <= {*flat}:
        raise ConfigError(f"price=auto: no price of {found.id} by tokens is known; give price: {_FORM}; {_WITHOUT}")
    source = f"genai-prices {version('genai-prices')}, {provider.id}/{found.id}, of {now:%Y-%m-%d}"
    return Price._with(flat, source)
