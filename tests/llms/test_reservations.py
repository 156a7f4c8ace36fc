"""What calls in flight reserve of a budget where a server bills more than its bound and others spend, too."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from chat_server import ChatServer
from processes import until
from ragauge.contract.usage import Usage
from ragauge.llms.budgets import Begun, Planned
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger
from ragauge.store import Store


def key(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


def planned(name: object, budget: str, model: str = "m", limit: float = 10.0) -> Planned:
    return Planned(key(name), budget, model, 2.0, limit)


@pytest.fixture(params=["file", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("empty_postgres"))
    return str(tmp_path / "ledger.db")


_ASK = """
import sys
from pathlib import Path
from ragauge.contract.errors import GateError
from ragauge.llms.chat import ChatLLM
from ragauge.store import Store
url, root, number = sys.argv[1:]
chat = {"_target_": "langchain_ollama.ChatOllama", "model": "m", "base_url": url, "num_predict": 1000}
llm = ChatLLM(chat, budget="b", price={"prompt": 0, "completion": 10}, max_cost_usd=0.2)
print("ready", flush=True)
sys.stdin.readline()
try:
    llm.ask([f"{number}-{i}" for i in range(30)], Store(Path(root)), "answers")
except GateError as error:
    print(error)
"""


# A call costs 0.01 at most, by num_predict and price; the server bills 3000 tokens, which cost 0.03.
@pytest.mark.slow
def test_four_processes_stay_within_one_limit_where_a_chat_model_bills_thrice_its_bound(store: Store) -> None:
    lie = lambda prompt, n, honest: {**honest, "completion_tokens": 3000}  # noqa: E731
    with ChatServer(usage=lie, delay=0.05) as server, ExitStack() as stack:
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, "-c", _ASK, server.url, str(store.root)]
        asking: list[Any] = [stack.enter_context(subprocess.Popen([*command, str(n)], **pipes)) for n in range(4)]
        assert [process.stdout.readline() for process in asking] == ["ready\n"] * 4
        for process in asking:
            process.stdin.write("\n")
            process.stdin.flush()
        errors = [process.communicate()[0] for process in asking]
        assert sum(server.calls.values()) == 6
    assert all("0.1800 of 0.2 USD are spent and the next call to m can cost 0.0300" in error for error in errors)


def test_a_first_call_flies_alone_and_the_others_reserve_what_it_was_billed(where: str) -> None:
    ledger = Ledger(where)
    calls = [planned(f"call {i}", "learns") for i in range(5)]

    def finish(call: Planned, usd: float) -> None:
        ledger.add_soon(Call(call.key, "{}", "a reply", "stop", Usage(1, 1, usd, 0.1, 1), "learns"), call).result()

    def again(call: Planned) -> Begun:
        return ledger.begin(call, again=True).result()

    first, *others = [ledger.begin(call).result() for call in calls]
    assert first == Begun(True, reserved=True, needed=2.0, spent=0.0)
    assert others == [Begun(True, reserved=False, needed=2.0, spent=0.0)] * 4
    other = planned("of another model", "learns", model="n")
    assert ledger.begin(other).result().reserved  # 2 + 2 of 10
    ledger.unreserve(other.key)
    finish(calls[0], 3.0)
    assert [again(call).needed for call in calls[1:3]] == [3.0, 3.0]  # 3 + 3 + 3 of 10
    assert not again(calls[3]).reserved
    ledger.unreserve(calls[1].key)  # a refused connection costs nothing
    assert again(calls[3]).reserved
    # A bill of 4 raises what calls in flight count for: 7 + 4 + 4.
    finish(calls[2], 4.0)
    assert again(calls[4]) == Begun(True, reserved=False, needed=4.0, spent=7.0)
    assert again(planned("call 4", "learns", limit=15.0)).reserved
    ledger.close()


_RESERVE = """
import os, sys
from ragauge.llms.budgets import Planned
from ragauge.llms.ledger import Ledger
ledger = Ledger(sys.argv[1])
assert ledger.begin(Planned(sys.argv[2], "ends", "m", 2.0, 10.0)).result().reserved
print("reserved", flush=True)
sys.stdin.readline()
os._exit(9)
"""


def test_a_reservation_ends_with_its_process_and_not_before(where: str) -> None:
    ledger, call = Ledger(where), planned("mine", "ends")
    assert ledger.claim(call.key)
    reserves = lambda: ledger.begin(call, again=True).result().reserved  # noqa: E731
    with subprocess.Popen(
        [sys.executable, "-c", _RESERVE, where, key("theirs")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == "reserved\n"
        assert not any(reserves() for _ in range(2))  # what the first try removed would be missed by the second
        holder.communicate("\n")
    # PostgreSQL drops the claim once it notices that the connection ended.
    until(reserves, "the reservation's end")
    assert ledger.claim(key("theirs"))
    ledger.close()
