"""Whether the next call has room in its budget, beside what is spent and the calls in flight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragauge.llms.databases import Database

_SPEND = """INSERT INTO budgets (budget, model, spent_usd, largest_usd) VALUES (?, ?, ?, ?)
            ON CONFLICT (budget, model) DO UPDATE SET spent_usd = budgets.spent_usd + excluded.spent_usd,
            largest_usd = CASE WHEN budgets.largest_usd < excluded.largest_usd
                          THEN excluded.largest_usd ELSE budgets.largest_usd END"""


@dataclass(frozen=True)
class Planned:
    """A planned call: its key, its highest cost `bound` and its budget's `limit` in US dollars, None for no limit."""

    key: str
    budget: str = ""
    model: str = ""
    bound: float = 0.0
    limit: float | None = None


@dataclass(frozen=True)
class Begun:
    """Whether a call may be made.

    claimed: its request is this process's alone, until it ends. batch: the provider's batch in which it stands, "" for
    none. known: a reply to it is in the ledger, so that nothing was reserved. reserved: its budget has room for it.
    needed, spent: US dollars that it can cost, and that the budget has spent or submitted in a batch.
    """

    claimed: bool
    batch: str = ""
    known: bool = False
    reserved: bool = False
    needed: float = 0.0
    spent: float = 0.0


class Budget:
    """A budget's spending and the highest cost of its calls in flight, for the calls of one group.

    A call reserves its bound, or the largest bill above its bound that the budget and model have had. Until their first
    bill is known, one call is in flight at a time.
    """

    def __init__(self, db: Database, name: str) -> None:
        sums = db.execute("SELECT model, spent_usd, largest_usd FROM budgets WHERE budget = ?", [name]).fetchall()
        self.largest = {model: float(largest) for model, _, largest in sums if model}
        query = "SELECT key, owner, model, usd, batch FROM claims WHERE budget = ?"
        claims = db.execute(query, [name]).fetchall()
        self.spent = sum(row[1] for row in sums) + sum(row[3] for row in claims if row[4])
        self.claims = {key: (owner, model, usd) for key, owner, model, usd, batch in claims if not batch}

    def owners(self) -> set[str]:
        """Who holds the claims."""
        return {owner for owner, _, _ in self.claims.values()}

    def reserve(self, planned: Planned, owner: str) -> Begun:
        """How a call of the owner begins: with its cost reserved if there is room beside all others."""
        assert planned.limit is not None
        others = [(model, usd) for key, (_, model, usd) in self.claims.items() if key != planned.key]
        needed = max(planned.bound, self.largest.get(planned.model, 0.0))
        held = sum(max(usd, self.largest.get(model, 0.0)) for model, usd in others)
        alone = planned.model in self.largest or planned.model not in {model for model, _ in others}
        reserved = alone and self.spent + held + needed <= planned.limit
        if reserved:
            self.claims[planned.key] = (owner, planned.model, needed)
        return Begun(True, reserved=reserved, needed=needed, spent=self.spent)


def spend(db: Database, sums: Mapping[tuple[str, str], Sequence[float]]) -> None:
    """Adds to what is spent: {(budget, model): [US dollars, the largest bill above its bound]}."""
    db.executemany(_SPEND, [(*name, *of) for name, of in sums.items()])
