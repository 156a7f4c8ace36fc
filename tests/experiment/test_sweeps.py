"""What a sweep says of its jobs."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.jobs import Jobs


def sweep(budgets: dict[str, list[int]]) -> Jobs:
    rows = [{"system": system, "n_tokens": n, "qid": "q1"} for system, ns in budgets.items() for n in ns]
    return Jobs("s", "ragauge", [], [], pd.DataFrame(rows))


def test_the_leaderboard_s_budget_is_the_largest_that_every_system_has() -> None:
    assert sweep({"bm25": [100, 300, 500], "sim": [100, 300]}).n_tokens == 300
    assert sweep({"bm25": [100, 500], "sim": [300, 500, 900]}).n_tokens == 500


def test_where_no_budget_is_every_system_s_the_largest_of_all_is_taken() -> None:
    assert sweep({"bm25": [100], "sim": [300]}).n_tokens == 300
