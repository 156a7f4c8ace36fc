"""The check on what a killed command sends again catches what it is there for."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from chat_server import ChatServer, Logged, digest_of
from kills import Kill, Resent, check_kills, kill_and_read, recorded_in
from processes import Command, until
from ragauge.llms.ledger import Call, Ledger


def log(*events: str) -> list[Logged]:
    """Of "+a" a is received, of "-a" it is answered."""
    kinds = {"+": "received", "-": "answered"}
    return [Logged(i, kinds[one[0]], one[1:]) for i, one in enumerate(events)]


def test_what_was_in_flight_may_come_again_and_is_counted() -> None:
    events = log("+a", "-a", "+b", "-b", "+c", "+b", "-b", "+c", "-c", "+d", "-d")
    kills = [Kill(5, frozenset({"a"}))]
    assert check_kills(events, kills, 2) == Resent((1,), (2,), 2, 1)  # b was answered, and not recorded


@pytest.mark.parametrize(
    ("events", "recorded", "told"),
    [
        (("+a", "-a", "+b", "+a", "-a"), "a", "after their replies were recorded: .3."),
        (("+a", "-a", "+a", "+b", "-b"), "", "2 was not in flight at a kill"),
        (("+a", "-a", "+b", "+b", "+b"), "a", "4 was not in flight at a kill"),  # once a kill
        (("+a", "+c", "+d", "-b"), "", "more were in flight"),
    ],
)
def test_a_request_that_no_kill_cut_off_may_not_come_again(events: tuple[str, ...], recorded: str, told: str) -> None:
    kills = [Kill(3, frozenset(recorded))]
    with pytest.raises(AssertionError, match=told):
        check_kills(log(*events), kills, 2)


def test_a_ledger_that_is_open_elsewhere_is_read_with_what_it_wrote_last(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    for prompt, text in (("one", "reply"), ("none", None)):
        request = f'{{"messages": [["human", "{prompt}"]]}}'
        ledger.add(Call(prompt, request, text, "stop", 1, 1, 0.0, 0.1, "test"))
    assert recorded_in(tmp_path / "ledger.db") == {digest_of("one"): 1}
    ledger.close()


def test_the_server_numbers_what_it_receives_and_answers_whole(tmp_path: Path) -> None:
    with ChatServer(faults=lambda prompt, n: "500" if prompt == "bad" else None) as server:
        for prompt in ("good", "bad"):
            body = {"messages": [{"content": prompt}]}
            server.begin(body, {})
            server.end(prompt, whole=prompt == "good")
        good, bad = map(digest_of, ("good", "bad"))
        assert server.log == [
            Logged(0, "received", good), Logged(1, "answered", good), Logged(2, "received", bad),
        ]  # fmt: skip


_ASK = """
import sys
import sqlite3
from pathlib import Path
from ragauge.llms.chat import ChatLLM
from ragauge.store import Store
chat = {"_target_": "langchain_ollama.ChatOllama", "base_url": sys.argv[1], "model": "tiny", "temperature": 0}
llm = ChatLLM(chat=chat, concurrency=4, backoff=0.01)
llm.ask([f"p{i}" for i in range(40)], Store(Path(sys.argv[2])), "answers")
"""


@pytest.mark.slow
@pytest.mark.parametrize("forgets", [False, True])
def test_a_ledger_that_forgets_what_it_had_recorded_is_found_out(tmp_path: Path, forgets: bool) -> None:
    script, store = tmp_path / "ask.py", tmp_path / "store"
    script.write_text(_ASK)
    with ChatServer(delay=0.02) as server:
        command = Command(tmp_path, server.url, str(store), program=str(script))
        until(lambda: sum(server.whole.values()) >= 15 or not command.runs, "requests")
        kill = kill_and_read(command, server, tmp_path)
        assert 0 < len(kill.recorded) < 40
        if forgets:
            with sqlite3.connect(store / "ledger.db") as ledger:
                ledger.execute("DELETE FROM calls WHERE rowid = 1")
            ledger.close()
        done = Command(tmp_path, server.url, str(store), program=str(script)).wait()
        assert done.returncode == 0, done.stderr
    if not forgets:
        found = check_kills(server.log, [kill], 4)
        assert found.again == found.in_flight[0] <= 4
        assert found.recorded == (len(kill.recorded),)
        return
    assert sum(n - 1 for n in server.whole.values()) <= 8  # by the number alone it would pass
    with pytest.raises(AssertionError, match="received again after their replies were recorded"):
        check_kills(server.log, [kill], 4)
