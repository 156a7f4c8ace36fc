"""Every part that reads a model's reply asks again, in a later run, for the one that could not be read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from chat_server import ChatServer, first_of
from ragauge.answering import ChatGenerator
from ragauge.answering.judges import ChatJudge
from ragauge.contract.current_job import run_begins
from ragauge.llms.chat import Evaluator
from ragauge.retrieval.retrievers import MLQ
from small_pipeline import SmallPipelines

BAD = "---"


def model(kind: Any, server: ChatServer, **fields: Any) -> Any:
    chat = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "model": "m"}
    return kind(chat=chat, backoff=0.0, retries=0, **fields)


# The part, what it replaces, whether it asks the llm or a model of its own, the frame, readable replies.
PARTS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "retriever": ({"retriever": MLQ(top_k=3)}, "run", lambda prompt: "tower of Anna\nbridge"),
    "judge": ({"judge": ChatJudge}, "verdicts", lambda prompt: '{"label": 5, "reason": "It says so."}'),
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_what_could_not_be_read_is_asked_again_and_then_stored(part: str, small: SmallPipelines) -> None:
    check_asked_again(part, *PARTS[part], small)


def check_asked_again(part: str, given: dict[str, Any], frame: str, good: Any, small: SmallPipelines) -> None:
    """What could not be read is not stored, asked for again in a later run, and then stored."""
    mended = False

    def bad(prompt: str) -> bool:
        return "Who built the tower?" in prompt or "Anna built the tower." in prompt

    with ChatServer(lambda prompt: BAD if bad(prompt) and not mended else good(prompt)) as server:
        asks_llm = part in ("rewriter", "retriever", "reranker", "compressor")

        def made() -> list[str]:
            more = {"judge": model(ChatJudge, server)} if part == "judge" else given
            more = {**more, "llm": model(ChatGenerator, server)} if asks_llm else more
            job = small(**more, **({} if asks_llm else {"evaluator": model(Evaluator, server)}))
            job.frame(frame)
            return job.made

        def asked() -> Counter[str]:
            """Requests by their first prompt: one for more says why the reply before could not be read."""
            found = Counter[str]()
            for prompt, n in server.calls.items():
                found[first_of(prompt)] += n
            return found

        first = made()
        before = asked()
        twice = {prompt for prompt, n in before.items() if n == 2}
        assert twice
        assert all(map(bad, twice))
        assert {before[prompt] for prompt in set(before) - twice} == {1}
        mended = True
        run_begins()
        assert set(made()) & set(first)  # it was not stored
        after = asked()
        again = {prompt for prompt, n in after.items() if n > before[prompt]}
        assert twice <= again
        assert all(after[prompt] == 3 for prompt in twice)
        assert all(prompt not in before for prompt in again - twice)  # what follows from the new replies
        last = asked()
        run_begins()
        assert not set(made()) & set(first)  # now it is
        assert asked() == last
