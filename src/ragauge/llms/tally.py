"""Sums the cost of a batch's calls, and warns once, at its end, of what was odd in them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragauge.contract.usage import Usage

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

log = logging.getLogger(__name__)


@dataclass
class Tally:
    """US dollars spent by a batch, its failures by their reasons, and the usage that cannot be trusted."""

    llm: ChatSettings
    what: str
    spent: float = 0.0
    echoes: int = 0  # replies in which a key of the configuration was masked
    failures: Counter[str] = field(default_factory=Counter)  # requests without a reply, by the last reason
    _guessed: list[float] = field(default_factory=list)  # costs of calls whose usage is not known
    _exceeding: list[str] = field(default_factory=list)  # counts above their bound, in words

    def charge(self, prompt: str, options: Mapping[str, Any], usage: Usage, billed: float | None) -> None:
        """Counts a call's usage. billed: the server's own report of its cost, None without one."""
        self.spent += usage.cost_usd
        if usage.usage_unknown:
            self._guessed.append(usage.cost_usd)
        counts = (usage.prompt_tokens, usage.completion_tokens)
        bounds = self.llm.token_bounds(prompt, options)
        for n, bound, of in zip(counts, bounds, ("prompt", "completion"), strict=True):
            if n is not None and n > bound:
                self._exceeding.append(f"{n} {of} tokens where {bound} were the most")
        if billed is not None and self.llm.max_cost_usd is not None:
            most = self.llm.cost_bound(prompt, options)
            if billed > most:
                self._exceeding.append(f"{billed:g} USD where {most:g} were the most")

    def fail(self, error: str, why: str) -> None:
        """Logs a request without a reply, the first for a reason as a warning."""
        self.failures[why] += 1
        level = logging.WARNING if self.failures[why] == 1 else logging.DEBUG
        log.log(level, "%s: no reply after %s", self.what, error)

    def tell(self) -> None:
        """Warns of further failures, of replies that repeat a key, of unknown usage, and of usage above its bound."""
        for why, n in self.failures.items():
            if n > 1:
                log.warning("%s: no reply to %d more request(s), the last: %s", self.what, n - 1, why)
        if self.echoes:
            log.warning(
                "%s: %d reply(s) repeat a key of the configuration; *** stands in its place", self.what, self.echoes
            )
        if self._guessed:
            cost = sum(self._guessed)
            counted = f"; each counts at the most it can cost, {cost:.4f} USD together" if cost else ""
            log.warning("%s: %d call(s) came without a usable token count%s", self.what, len(self._guessed), counted)
        if self._exceeding and (self.llm.price is not None or self.llm.max_cost_usd is not None):
            log.warning(
                "%s: %d count(s) are above the bound that max_cost_usd reckons with, such as %s; they are "
                "charged as told",
                self.what, len(self._exceeding), self._exceeding[0],
            )  # fmt: skip
