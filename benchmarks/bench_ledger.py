"""Calls per second with a ledger of 400,000 calls against one of 1,000, all of one budget with a cost limit.

    python benchmarks/bench_ledger.py

The model answers at once and in the process, so that what is timed is claiming, looking up, reserving and
committing. Rounds on both ledgers take turns; medians.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
import time
from pathlib import Path

from timing import against, interleaved, print_header, print_row

from ragauge.llms.chat import ChatLLM
from ragauge.llms.databases import ROW, row_digest
from ragauge.llms.ledger import Ledger, open_ledger
from ragauge.store import Store

SIZES = (1_000, 400_000)
CALLS, ROUNDS, GOAL = 200, 9, 0.9
REQUEST_CHARACTERS = 1000
MODEL = "langchain_core.language_models.fake_chat_models.FakeListChatModel"


def fill(file: Path, n: int) -> None:
    """Writes n finished calls into a new ledger."""
    Ledger(file).close()
    connection = sqlite3.connect(file)
    reply = json.dumps({"text": "a", "finish": "", "prompt_tokens": 1, "completion_tokens": 1, "seconds": 1.0})
    request = "x" * REQUEST_CHARACTERS
    keys = (hashlib.sha256(str(i).encode()).hexdigest() for i in range(n))
    rows = ((key, request, reply, 1e-6, "study") for key in keys)
    connection.executemany(
        f"INSERT INTO calls ({ROW}) VALUES (?,?,?,?,?,?)", ((*row, row_digest(*row)) for row in rows)
    )
    connection.execute("INSERT INTO budgets SELECT budget, SUM(cost_usd) FROM calls GROUP BY budget")
    connection.commit()
    connection.close()


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch) / "store")
        models, opened, round_of = {}, {}, dict.fromkeys(SIZES, 0)
        for n in SIZES:
            file = Path(scratch) / f"{n}.db"
            fill(file, n)
            began = time.perf_counter()
            open_ledger(file)
            opened[n] = time.perf_counter() - began
            models[n] = ChatLLM(
                chat={"_target_": MODEL, "responses": ["a reply"]},
                price={"prompt": 1.0, "completion": 1.0},
                max_cost_usd=1e6,
                budget="study",
                ledger=str(file),
            )

        def ask(n: int) -> int:
            round_of[n] += 1
            prompts = [f"{round_of[n]} {i} " + "x" * REQUEST_CHARACTERS for i in range(CALLS)]
            return sum(reply.text == "a reply" for reply in models[n].ask(prompts, store, "calls"))

        for n in SIZES:
            ask(n)
        seconds, asked = interleaved({str(n): lambda n=n: ask(n) for n in SIZES}, ROUNDS)
        assert set(asked.values()) == {CALLS}
        counted = [float(sqlite3.connect(f"{scratch}/{n}.db").execute(_SUM).fetchone()[0]) for n in SIZES]
        spent = [open_ledger(Path(scratch) / f"{n}.db").spent("study") for n in SIZES]
        assert all(abs(a - b) < 1e-6 for a, b in zip(counted, spent, strict=True))
    small, large = (CALLS / seconds[str(n)] for n in SIZES)
    print_header("calls in the ledger", "calls per second", "ratio", "opening the ledger")
    print_row(f"{SIZES[0]:,}", f"{small:,.0f}", "", f"{opened[SIZES[0]]:.2f} s")
    ratio = f"{large / small:.2f}{against(GOAL, large / small)}"
    print_row(f"{SIZES[1]:,}", f"{large:,.0f}", ratio, f"{opened[SIZES[1]]:.2f} s")


_SUM = "SELECT SUM(cost_usd) FROM calls"

if __name__ == "__main__":
    main()
