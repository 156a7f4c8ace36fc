"""A provider that bills by published rules, and a client that is killed: what the ledger says is what was billed."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from chat_server import ChatServer
from processes import Command, until
from ragauge.answering.chat import ChatGenerator
from ragauge.store import Store

KILLS, CONCURRENCY, CENT = 3, 8, 0.01
# 125 prompts: 25 questions at five budgets, whose contexts are prefixes of one another. A token is a word.
PROMPTS = [
    " ".join(f"q{question}w{i}" for i in range(n)) for question in range(25) for n in (120, 700, 1100, 1500, 2100)
]
_ASK = """
import json, sys
from pathlib import Path
from ragauge.answering.chat import ChatGenerator
from ragauge.contract.errors import GateError
from ragauge.store import Store
settings, prompts = json.loads(Path("settings.json").read_text()), json.loads(Path("prompts.json").read_text())
try:
    ChatGenerator(**settings).ask(prompts, Store("store"), "bills")
except GateError as error:
    sys.exit(3)
"""


@dataclass
class Provider:
    """Counts the tokens of its cache by `rule`, and bills each call in exact US dollars.

    rule: the words of a prompt and all prompts before to the tokens read and written, None where that is not known.
    form: the usage of a call, as the provider reports it.
    """

    price: Mapping[str, float]
    rule: Callable[[list[str], list[list[str]]], tuple[int, int]]
    form: Callable[[int, int, int, int], dict[str, Any]]
    before: list[list[str]] = field(default_factory=list)
    bills: dict[str, list[Fraction]] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)

    def usage(self, prompt: str, n: int, honest: Mapping[str, int]) -> dict[str, Any]:
        words, completion = prompt.split(), honest["completion_tokens"]
        with self.lock:
            read, written = self.rule(words, self.before)
            self.before.append(words)
            counts = {
                "prompt": len(words) - read - written,
                "cached": read,
                "written": written,
                "completion": completion,
            }
            prices = {"cached": self.price["prompt"], "written": self.price["prompt"], **self.price}
            bill = sum(Fraction(str(prices[name])) * count for name, count in counts.items()) / 10**6
            self.bills.setdefault(prompt, []).append(bill)
            self.read[prompt] = read
        return self.form(len(words), completion, read, written)


def shared(one: list[str], other: list[str]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def nothing(words: list[str], before: list[list[str]]) -> tuple[int, int]:
    return 0, 0


def blocks(words: list[str], before: list[list[str]]) -> tuple[int, int]:
    """OpenAI before 5.6: prefixes of 1,024 tokens and more, in steps of 128; writing costs nothing."""
    longest = max((shared(words, one) for one in before), default=0)
    return (longest // 128 * 128 if longest >= 1024 else 0), 0


def breakpoints(words: list[str], before: list[list[str]]) -> tuple[int, int]:
    """A breakpoint at the end of a prompt of 1,024 tokens or more: read where one is a prefix, the rest is written."""
    marked = [len(one) for one in before if len(one) >= 1024 and one == words[: len(one)]]
    read = max(marked, default=0)
    return read, (len(words) - read if len(words) >= 1024 else 0)


def units(words: list[str], before: list[list[str]]) -> tuple[int, int]:
    """DeepSeek: whole units of 64 tokens."""
    return max((shared(words, one) for one in before), default=0) // 64 * 64, 0


def plain(prompt: int, completion: int, read: int, written: int) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion}


def with_details(prompt: int, completion: int, read: int, written: int) -> dict[str, Any]:
    return {**plain(prompt, completion, read, written), "prompt_tokens_details": {"cached_tokens": read}}


def with_writes(prompt: int, completion: int, read: int, written: int) -> dict[str, Any]:
    details = {"cached_tokens": read, "cache_write_tokens": written}
    return {**plain(prompt, completion, read, written), "prompt_tokens_details": details}


def hits(prompt: int, completion: int, read: int, written: int) -> dict[str, Any]:
    told = {"prompt_cache_hit_tokens": read, "prompt_cache_miss_tokens": prompt - read}
    return {**plain(prompt, completion, read, written), **told}


PROVIDERS = {
    "no_cache": ({"prompt": 3, "completion": 15}, nothing, plain),
    "blocks": ({"prompt": 2.5, "cached": 1.25, "completion": 10}, blocks, with_details),
    "breakpoints": ({"prompt": 3, "cached": 0.3, "written": 3.75, "completion": 15}, breakpoints, with_writes),
    "units": ({"prompt": 0.27, "cached": 0.07, "completion": 1.1}, units, hits),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
def test_the_cost_in_the_ledger_is_the_providers_bill_and_passes_no_limit(tmp_path: Path, name: str) -> None:
    price, rule, form = PROVIDERS[name]
    provider, dice = Provider(price, rule, form), random.Random(name)
    prompts = random.Random(7).sample(PROMPTS, len(PROMPTS))
    script = tmp_path / "ask.py"
    script.write_text(_ASK)
    (tmp_path / "prompts.json").write_text(json.dumps(prompts))
    with ChatServer(usage=provider.usage, delay=0.02) as server:
        chat = {
            "_target_": "langchain_openai.ChatOpenAI", "model": "m", "base_url": f"{server.url}/v1", "max_tokens": 20,
        }  # fmt: skip
        settings = {"chat": chat, "price": price, "concurrency": CONCURRENCY, "budget": "bills", "api_key_env": "NONE"}

        model, store = ChatGenerator(**settings), Store(tmp_path / "store")

        def billed() -> float:
            """The bill for the last call of every prompt that the ledger knows: a kill cut off the others."""
            known = zip(prompts, model.known(prompts, store), strict=True)
            return float(sum(provider.bills[prompt][-1] for prompt, reply in known if reply is not None))

        def start(**further: Any) -> Command:
            (tmp_path / "settings.json").write_text(json.dumps({**settings, **further}))
            return Command(tmp_path, program=str(script))

        dearest = ChatGenerator(**settings).cost_bound(max(prompts, key=len))
        limit = 2.5 * dearest + 0.2 * sum(len(p.split()) for p in prompts) * price["prompt"] / 1e6
        for _ in range(KILLS):
            calls = sum(server.calls.values()) + dice.randint(6, 12)
            asking = start(max_cost_usd=limit)
            until(lambda n=calls, a=asking: sum(server.calls.values()) >= n or not a.runs, "calls")
            asking.kill()
        stopped = start(max_cost_usd=limit).wait()
        assert stopped.returncode == 3, stopped.stderr
        assert model.spent(store) == pytest.approx(billed(), abs=CENT / 1e4)
        assert limit - dearest < model.spent(store) <= limit
        done = start().wait()
        assert done.returncode == 0, done.stderr
        lost = sum(len(bills) - 1 for bills in provider.bills.values())
        assert lost <= KILLS * CONCURRENCY
        replies = model.ask(prompts, store, "bills")
        assert sum(server.calls.values()) == len(prompts) + lost
    assert model.spent(store) == pytest.approx(billed(), abs=CENT / 1e4)
    told = [reply.usage.cached_tokens for reply in replies]
    assert told == [None if form is plain else provider.read[prompt] for prompt in prompts]
    print(f"{name}: {sum(server.calls.values())} calls, {lost} lost to {KILLS} kills, billed {billed():.4f} USD")
