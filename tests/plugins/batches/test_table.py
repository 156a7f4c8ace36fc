"""The table of open batches by hand: which requests the money lets in, what is open, and what a reply settles."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.contract.usage import Usage
from ragauge.llms.budgets import Begun, Planned
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger
from ragauge.plugins.batches import table
from ragauge.plugins.batches.table import OpenBatch, Request


def call(key: str, usd: float, budget: str = "b") -> Call:
    return Call(key, "{}", f"reply to {key}", "stop", Usage(3, 4, usd, 0.0, 1), budget)


def wants(**usd: float) -> list[Request]:
    return [Request(key, f'{{"of": "{key}"}}', "b", cost) for key, cost in usd.items()]


def test_what_enters_what_is_open_and_what_is_settled(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    early, late = OpenBatch("early", "http://a", "", 0.0), OpenBatch("late", "http://b", "", 0.0)
    ledger.add(call("paid", 1.0))
    ledger.add(call("of another budget", 50.0, "c"))
    flying = "f1" * 32
    assert ledger.begin(Planned(flying, "b", "m", 2.0, 10.0)).result() == Begun(
        True, reserved=True, needed=2.0, spent=1.0
    )
    # 10 less 1 that is paid and 2 in flight.
    assert table.enter(ledger, early, wants(a=2.0), 10.0) == ({"a"}, pytest.approx(5.0))
    # Of the 5 that are left b and c take all; a stands in another batch; behind d, which does not fit, none is tried.
    entered, room = table.enter(ledger, late, wants(a=2.0, b=2.0, c=3.0, d=0.5, e=0.0), 10.0)
    assert (entered, room) == ({"b", "c"}, pytest.approx(0, abs=1e-6))
    assert table.enter(ledger, late, wants(f=99.0), None) == ({"f"}, float("inf"))
    assert table.enter(ledger, OpenBatch("none", "http://a", "", 0.0), wants(g=1.0), 10.0)[0] == set()

    table.mark(ledger, "early", sent_at=9.0)
    table.mark(ledger, "late", sent_at=5.0)
    table.mark(ledger, "early", remote="batch_1")
    opened = [OpenBatch("late", "http://b", "", 5.0), OpenBatch("early", "http://a", "batch_1", 9.0)]
    assert table.open_batches(ledger) == opened
    assert table.open_batches(ledger, ["early", "none"]) == opened[1:]
    assert table.requests_of(ledger, "late") == {one.key: one for one in wants(b=2.0, c=3.0, f=99.0)}

    # c was not charged, and a is of another batch.
    replies = {"a": call("a", 0.5), "b": call("b", 0.25), "c": None}
    assert table.settle(ledger, "late", replies) == {"b", "c"}
    assert table.settle(ledger, "late", replies) == set()
    assert ledger.find(["a", "b", "c"]) == {"b": call("b", 0.25)}
    assert ledger.spent("b") == 1.25
    assert set(table.requests_of(ledger, "late")) == {"f"}
    assert table.settle(ledger, "late", {"f": None}) == {"f"}
    assert table.open_batches(ledger) == opened[1:]  # none of the other's requests is open
    table.close(ledger, "early")
    assert (table.open_batches(ledger), table.requests_of(ledger, "early")) == ([], {})
    ledger.close()
