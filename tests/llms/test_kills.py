"""The check on what a killed command sends again catches what it is there for."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chat_server import ChatServer, Logged, digest_of
from kills import Kill, Resent, check_kills, recorded_in
from processes import until
from ragauge.contract.usage import Usage
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger


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
        ledger.add(Call(prompt, request, text, "stop", Usage(1, 1, 0.0, 0.1, 1), "test"))
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


# Forks a process that asks for each line that it reads, so that none has to import anything.
_ASK = """
import os, sys
from pathlib import Path
from ragauge.llms.chat import ChatLLM
from ragauge.store import Store
chat = {"_target_": "langchain_ollama.ChatOllama", "base_url": sys.argv[1], "model": "tiny", "temperature": 0}
llm = ChatLLM(
    chat=chat, concurrency=8, backoff=0.01, budget="b", price={"prompt": 1, "completion": 1}, max_cost_usd=1.0
)
import langchain_ollama, ragauge.llms.postgres
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        llm.ask([f"p{i}" for i in range(400)], Store(Path(sys.argv[2])), "answers")
        os._exit(0)
    print(pid, flush=True)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


@pytest.mark.slow
def test_forty_kills_at_random_moments_resend_nothing_that_was_recorded(tmp_path: Path) -> None:
    dice, kills = random.Random(7), []
    ledger = tmp_path / "ledger.db"
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with (
        ChatServer(delay=0.02) as server,
        subprocess.Popen([sys.executable, "-c", _ASK, server.url, str(tmp_path)], **pipes) as asking,
    ):

        def ask(killed: bool) -> None:
            asking.stdin.write("\n")
            pid = int(asking.stdout.readline())
            if killed:
                enough = len(server.log) + dice.randint(1, 30)
                until(lambda: len(server.log) >= enough, "requests")
                time.sleep(dice.uniform(0, 0.04))
                os.kill(pid, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(int(asking.stdout.readline())) == (-signal.SIGKILL if killed else 0)
            seen = -1
            while seen != len(server.log):  # what still stood in a socket arrives, too
                seen = len(server.log)
                time.sleep(0.3)
                until(lambda: server.in_flight == 0, "the server's replies")

        for _ in range(40):
            ask(killed=True)
            kills.append(Kill(len(server.log), frozenset(recorded_in(ledger))))
        ask(killed=False)
        found = check_kills(server.log, kills, 8)
        assert 100 < found.recorded[-1] < 400
        assert found.again <= sum(found.in_flight)
        assert recorded_in(ledger) == dict.fromkeys(map(digest_of, (f"p{i}" for i in range(400))), 1)
        # A ledger that forgets is found out.
        end = Kill(len(server.log), frozenset(recorded_in(ledger)))
        with sqlite3.connect(ledger) as database:
            database.execute("DELETE FROM calls WHERE rowid = 1")
        database.close()
        ask(killed=False)
        with pytest.raises(AssertionError, match="received again after their replies were recorded"):
            check_kills(server.log, [*kills, end], 8)
        asking.stdin.close()
