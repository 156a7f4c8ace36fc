"""Calls per second through the ledger, by processes and database, and the share of a fast server's speed.

    python benchmarks/bench_ledger.py

The first table begins and adds calls without a model, 32 in flight in each process: claiming, looking up, reserving
and committing. PostgreSQL runs on this machine and flushes to its disk, as SQLite does. In the second a chat model
answers at once and in the process. In the last a server answers 300 requests a second, each after 200 ms, like a GPU
with 60 slots.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import heapq
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, cast

from timing import against, interleaved, print_header, print_row

from ragauge.contract.usage import Usage
from ragauge.llms.budgets import Planned
from ragauge.llms.chat import ChatLLM
from ragauge.llms.databases import ROW, row_digest
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger, open_ledger
from ragauge.store import Store

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from servers import database, postgres_server

SIZES = (1_000, 400_000)
CALLS, ROUNDS, GOAL = 1_000, 5, 0.9
PROCESSES, IN_FLIGHT, FAST = (1, 4), 32, 1_000
A_SECOND, SLOTS, LATENCY, SHARE = 300, 60, 0.2, 0.8
ANSWERED = 1_200
REQUEST_CHARACTERS = 1000
FAKE = {"_target_": "langchain_core.language_models.fake_chat_models.FakeListChatModel", "responses": ["a reply"]}


def model(ledger: str, limit: bool, chat: dict[str, Any] | None = None, in_flight: int = IN_FLIGHT) -> ChatLLM:
    """A chat model with that ledger."""
    return ChatLLM(
        chat=chat or FAKE,
        price={"prompt": 1.0, "completion": 1.0},
        max_cost_usd=1e6 if limit else None,
        budget="study",
        ledger=ledger,
        concurrency=in_flight,
        api_key_env="RAGAUGE_API_KEY" if chat else None,
    )


def prompts(name: str, n: int) -> list[str]:
    """n prompts that no other name has."""
    return [f"{name} {i} " + "x" * REQUEST_CHARACTERS for i in range(n)]


async def record(ledger: Ledger, name: str, n: int, limit: bool) -> None:
    """Begins and adds n calls, IN_FLIGHT at a time."""
    requests = iter(prompts(name, n))

    async def work() -> None:
        for request in requests:
            key = hashlib.sha256(request.encode()).hexdigest()
            planned = Planned(key, "study", "m", 1e-3, 1e6 if limit else None)
            begun = await asyncio.wrap_future(ledger.begin(planned))
            assert begun.claimed
            while not begun.reserved:  # until the first bill is known
                await asyncio.sleep(0.02)
                begun = await asyncio.wrap_future(ledger.begin(planned, again=True))
            call = Call(key, request, "a reply", "stop", Usage(250, 2, 1e-4, 0.2, 1), "study")
            await asyncio.wrap_future(ledger.add_soon(call, planned, ends=key))

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


def record_as_process(where: str, limit: bool) -> None:
    """Records calls once a line comes on standard input; prints the time of the end, and the processor's seconds."""
    ledger = Ledger(where)
    asyncio.run(record(ledger, f"warm {os.getpid()}", 64, limit))
    print("ready", flush=True)
    sys.stdin.readline()
    before = time.process_time()
    asyncio.run(record(ledger, str(os.getpid()), CALLS, limit))
    print(time.time(), time.process_time() - before, flush=True)


def speed(where: str, processes: int, limit: bool) -> tuple[float, float]:
    """Calls per second of so many processes that begin together, and the processor's seconds of a call."""
    command = [sys.executable, __file__, "--process", where, *(["--limit"] if limit else [])]
    with ExitStack() as stack:
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        recording: list[Any] = [stack.enter_context(subprocess.Popen(command, **pipes)) for _ in range(processes)]
        assert [process.stdout.readline() for process in recording] == ["ready\n"] * processes
        began = time.time()
        for process in recording:
            process.stdin.write("\n")
            process.stdin.flush()
        ended = [[float(one) for one in process.stdout.readline().split()] for process in recording]
    n = processes * CALLS
    return n / (max(end for end, _ in ended) - began), sum(used for _, used in ended) / n


def by_processes(scratch: str) -> None:
    """Prints the calls per second by database, processes and limit."""
    print_header("database", "processes", "a second with a cost limit", "processor a call", "a second without")
    with postgres_server(fsync=True) as server, database(server) as url:
        for name, where in (("SQLite", f"{scratch}/l.db"), ("PostgreSQL", url)):
            for n in PROCESSES:
                (limited, used), (free, _) = (speed(where, n, limit) for limit in (True, False))
                goal = against(FAST, limited) if name == "SQLite" and n == max(PROCESSES) else ""
                print_row(name, str(n), f"{limited:,.0f}{goal}", f"{used * 1e3:.2f} ms", f"{free:,.0f}")
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"\nLoad of the machine over 1, 5 and 15 minutes at the end: {load}; its cores: {os.cpu_count()}.\n")


def fill(file: Path, n: int) -> None:
    """Writes n finished calls into a new ledger."""
    Ledger(file).close()
    connection = sqlite3.connect(file)
    reply = json.dumps({"text": "a", "finish": "", "usage": Usage(1, 1, 1e-6, 1.0, 1).told()})
    request = "x" * REQUEST_CHARACTERS
    keys = (hashlib.sha256(str(i).encode()).hexdigest() for i in range(n))
    rows = ((key, request, reply, 1e-6, "study") for key in keys)
    connection.executemany(
        f"INSERT INTO calls ({ROW}, added) VALUES (?,?,?,?,?,?,0)", ((*row, row_digest(*row)) for row in rows)
    )
    connection.execute("INSERT INTO budgets SELECT budget, '', SUM(cost_usd), 0 FROM calls GROUP BY budget")
    connection.commit()
    connection.close()


def by_size(scratch: str) -> None:
    """Prints the calls per second of a large ledger beside a small one; rounds on both take turns, medians."""
    store = Store(Path(scratch) / "store")
    models, opened, round_of = {}, {}, dict.fromkeys(SIZES, 0)
    for n in SIZES:
        file = Path(scratch) / f"{n}.db"
        fill(file, n)
        began = time.perf_counter()
        open_ledger(file)
        opened[n] = time.perf_counter() - began
        models[n] = model(str(file), limit=True)

    def ask(n: int) -> int:
        round_of[n] += 1
        replies = models[n].ask(prompts(f"round {round_of[n]}", CALLS), store, "calls")
        return sum(reply.text == "a reply" for reply in replies)

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


_REPLY = json.dumps(
    {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a reply"}}],
        "usage": {"prompt_tokens": 250, "completion_tokens": 2, "total_tokens": 252},
    }
).encode()  # fmt: skip
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_REPLY) + _REPLY
_UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Talk(asyncio.Protocol):
    """A connection of a chat server that answers A_SECOND requests a second at most, over all connections."""

    free: ClassVar[list[float]] = [0.0] * SLOTS  # when each slot has answered, by the loop's clock

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._received, self._answers = b"", cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n") + 4) > 3:
            length = _LENGTH.search(self._received, 0, end)
            whole = end + (int(length[1]) if length else 0)
            if len(self._received) < whole:
                return
            self._received = self._received[whole:]
            if length is None:  # it asks which model is served
                self._answers.write(_UNKNOWN)
                continue
            loop = asyncio.get_running_loop()
            until = max(loop.time(), self.free[0]) + LATENCY
            heapq.heapreplace(self.free, until)
            loop.call_at(until, self._answers.write, _ANSWER)


async def serve() -> None:
    """Serves on loopback, and prints its port."""
    server = await asyncio.get_running_loop().create_server(Talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def of_a_fast_server(scratch: str) -> None:
    """Prints the share of a server's speed that one process reaches."""
    print_header("calls in flight", "calls per second", "share of the server's 300", "processor a call")
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            target = "langchain_openai.ChatOpenAI"
            chat = {"_target_": target, "model": "m", "base_url": f"http://127.0.0.1:{port}/v1", "max_tokens": 9}
            for in_flight in (4, 64):
                llm = model(f"{scratch}/fast.db", True, chat, in_flight)
                n = max(ANSWERED * in_flight // 64, 100)
                llm.ask(prompts(f"warm {in_flight}", in_flight), Store(Path(scratch)), "calls")
                began, used = time.perf_counter(), time.process_time()
                replies = llm.ask(prompts(str(in_flight), n), Store(Path(scratch)), "calls")
                reached, used = n / (time.perf_counter() - began), (time.process_time() - used) / n
                assert all(reply.text == "a reply" for reply in replies)
                share = reached / A_SECOND
                told = f"{share:.2f}{against(SHARE, share) if in_flight > 4 else ''}"
                print_row(str(in_flight), f"{reached:,.0f}", told, f"{used * 1e3:.1f} ms")
        finally:
            server.kill()


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--process")
    parser.add_argument("--limit", action="store_true")
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args(arguments)
    if given.serve:
        asyncio.run(serve())
    elif given.process:
        record_as_process(given.process, given.limit)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            for table in (by_processes, by_size, of_a_fast_server):
                table(scratch)
                print()


if __name__ == "__main__":
    main()
