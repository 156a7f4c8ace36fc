"""measure=support: by hand with a scripted model, and over HTTP, where no pair is asked about twice."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chat_server import ChatServer
from ragauge.answering import NoLLM
from ragauge.contract.component import ChatModel, Embedder, Tools
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.measures import Pieces
from ragauge.contract.replies import Reply
from ragauge.experiment.measured import measured_by, score_settings
from ragauge.experiment.stages.checks import check_measures
from ragauge.findings.cost import costs_of_parts
from ragauge.llms.chat import Evaluator
from ragauge.measures import Words
from ragauge.measures.answers import EvidenceMeasure
from ragauge.plugins.llm_measures.support import Support
from ragauge.retrieval.retrievers import BM25, Sim
from scripted_chat import unframed
from small_pipeline import SmallPipelines

NAN = float("nan")


def pair_of(prompt: str) -> tuple[str, str]:
    found = re.search(r"Statement:\n(.*)\n\nPassage:\n(.*)\n\nThe JSON", unframed(prompt), re.DOTALL)
    assert found is not None
    return found[1], found[2]


def said(holds: bool) -> str:
    return f'{{"stated": {str(holds).lower()}}}'


class Reader(ChatModel):
    """A model that finds the statement's last word in a passage; passages with `broken` get no answer."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    def ask(self, prompts: Sequence[str], store: object, what: str, readers: Any = ()) -> list[Reply]:
        pairs = [pair_of(prompt) for prompt in prompts]
        self.pairs += pairs
        return [
            Reply(None, "HTTP 500") if "broken" in passage else Reply(said(part.split()[-1] in passage))
            for part, passage in pairs
        ]


def scored(parts: list[str], passages: list[str], ends: list[int], tools: Tools) -> list[list[float]]:
    starts = np.cumsum([0, *(len(text) + 1 for text in passages)])[:-1].tolist()
    [found] = Support().score_pieces([parts], [Pieces(passages, starts)], [np.array(ends)], tools)
    return found.tolist()


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def asking(tools: Tools, reader: Reader) -> Tools:
    return dataclasses.replace(tools, chat=reader)


def test_a_part_is_stated_from_the_passage_on_that_states_it(asking: Tools, reader: Reader) -> None:
    passages = ["red green", "blue red", "blue"]  # end at 9, 18, 23
    assert scored(["it is blue", "it is grey"], passages, [0, 9, 14, 18, 23], asking) == [
        [0, 0, 1, 1, 1],  # `blue`, the cut text, states it, too
        [0, 0, 0, 0, 0],
    ]
    assert sorted(reader.pairs) == sorted(
        [
            *(("it is blue", text) for text in ("red green", "blue red", "blue")),
            *(("it is grey", text) for text in passages),
        ]
    )


def test_a_passage_whose_end_is_cut_off_is_asked_about_as_it_stands_there(asking: Tools) -> None:
    assert scored(["blue"], ["red blue"], [3, 4, 8], asking) == [[0, 0, 1]]


def test_what_two_passages_state_together_counts_as_not_stated(asking: Tools) -> None:
    both = Support(prompt="Is $statement in $passage? The last word counts.")
    assert both.prompt is not None
    assert scored(["red blue"], ["re d", "blu e"], [10], asking) == [[0]]


def test_a_reply_that_failed_is_missing_unless_another_passage_states_the_part(asking: Tools) -> None:
    found = scored(["blue", "grey"], ["red", "broken one", "blue"], [3, 8, 14, 19], asking)
    assert found[0][:1] == [0]
    assert np.isnan(found[0][1:3]).all()
    assert found[0][3] == 1
    assert np.isnan(found[1][1:]).all()


def test_passages_that_no_budget_reaches_are_not_asked_about(asking: Tools, reader: Reader) -> None:
    assert scored(["grey"], ["red", "blue", "  "], [0], asking) == [[0]]
    assert reader.pairs == []
    assert scored(["grey"], ["red", "  ", "blue"], [3], asking) == [[0]]
    assert reader.pairs == [("grey", "red")]
    assert scored(["grey"], [], [0, 0], asking) == [[0, 0]]


def test_texts_with_braces_and_dollars_are_shown_as_they_are(asking: Tools, reader: Reader) -> None:
    scored(["$passage {x} blue"], ["costs $5 {blue}"], [15], asking)
    assert reader.pairs == [("$passage {x} blue", "costs $5 {blue}")]


def test_a_reply_of_another_form_is_not_a_verdict(tools: Tools) -> None:
    class Talks(ChatModel):
        def ask(self, prompts: Sequence[str], store: object, what: str, readers: Any = ()) -> list[Reply]:
            return [Reply('{"stated": "perhaps"}') for _ in prompts]

    assert np.isnan(scored(["blue"], ["blue"], [4], dataclasses.replace(tools, chat=Talks()))[0][0])


# --- in jobs, over HTTP ----------------------------------------------------------------------------------


def evaluator(server: ChatServer) -> Evaluator:
    return Evaluator(
        chat={"_target_": "langchain_ollama.ChatOllama", "model": "m", "base_url": server.url},
        timeout=20.0, retries=0, backoff=0.01, concurrency=2,
    )  # fmt: skip


def by_last_word(prompt: str) -> str:
    part, passage = pair_of(prompt)
    return said(part.split()[-1].strip(".") in passage)


@pytest.fixture
def small(tmp_path: Path, hash_embedder: Embedder) -> SmallPipelines:
    return SmallPipelines(tmp_path, hash_embedder)


def test_retrievers_and_budgets_share_their_requests_and_a_rerun_asks_for_what_failed_alone(
    small: SmallPipelines,
) -> None:
    down = True

    def faults(prompt: str, n: int) -> str | None:
        return "500" if down and "bridge" in pair_of(prompt)[0] else None

    with ChatServer(reply=by_last_word, faults=faults) as server:
        parts = {"measure": Support(), "evaluator": evaluator(server), "llm": NoLLM()}
        first = small(**parts, retriever=Sim(top_k=3))
        assert set(first.frame("scores")["qid"]) == {"q1", "q3"}
        assert first.outcomes.set_index("qid")["ir_score"].isna().to_dict() == {
            "q1": False, "q2": True, "q3": False,
        }  # fmt: skip
        assert costs_of_parts(first)["measure_failed"] == 1
        job = small(**parts, retriever=Sim(top_k=3), max_missing_share=0.05)
        assert job.outcomes["ir_score"].isna().all()
        with pytest.raises(MissingError, match="1 of 3 IR scores are missing"):
            job.check_measured()
        down = False
        for retriever, n in ((Sim(top_k=3), 8), (BM25(top_k=3), 8), (Sim(top_k=3), 4)):
            job = small(**parts, retriever=retriever, n_tokens=n)
            assert job.outcomes["ir_score"].notna().all()
            assert "scores" not in small(**parts, retriever=retriever, n_tokens=n).made
        assert job.frame("floor_means").empty  # nobody is asked about unrelated text
        assert max(server.whole.values()) == 1
        pairs = {pair_of(prompt) for prompt in server.whole}
        assert len(pairs) == len(server.whole)
        asked = costs_of_parts(job)
        assert (asked["measure_llm_calls"], asked["measure_failed"]) == (0, 0)
        assert measured_by(job)["evaluator"]
        assert score_settings(job)["measure"]["chat"] == job.identity_of(job.evaluator_chat)


def test_without_a_chat_model_it_is_refused_before_any_work(small: SmallPipelines) -> None:
    with pytest.raises(ConfigError, match=r"^measure=support asks an LLM, .* choose an evaluator"):
        check_measures(small(measure=Support()))


def test_measures_of_evidence_stand_side_by_side_and_are_what_the_job_s_own_would_be(
    small: SmallPipelines,
) -> None:
    semantic = pytest.importorskip("ragauge.plugins.semantic.measure").Semantic()
    measures = {"words": Words(), "semantic": semantic, "support": Support()}
    with ChatServer(reply=by_last_word) as server:
        parts = {"evaluator": evaluator(server), "llm": NoLLM(), "n_grid": (4, 8, 16)}
        beside = {f"evidence_{name}": EvidenceMeasure(measure=m) for name, m in measures.items()}
        job = small(**parts, answers=beside)
        check_measures(job)
        shown = {info.name: info for info in job.answer_measures}
        for name, measure in measures.items():
            own = small(**parts, measure=measure).outcomes["ir_score"]
            assert job.outcomes[f"evidence_{name}"].tolist() == own.tolist()
            assert (shown[f"evidence_{name}"].of, shown[f"evidence_{name}"].unit) == ("context", "ratio")
        assert set(server.whole.values()) == {1}
