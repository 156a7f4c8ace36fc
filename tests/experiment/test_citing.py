"""A chat model that cites: what it is shown, what its answers are measured by, and what that needs."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from answer_inputs import generator
from chat_server import ChatServer
from ragauge.answering import ChatGenerator
from ragauge.contract import identity
from ragauge.contract.errors import ConfigError
from ragauge.experiment.dry_run import needs
from ragauge.experiment.stages.checks import check_measures
from ragauge.findings.per_question import per_question
from ragauge.measures.answers import ExactMatch
from ragauge.retrieval.contexts import numbered_contexts
from ragauge.retrieval.order import LongContextOrder
from scripted_chat import unframed
from small_pipeline import SmallPipelines


def reply(prompt: str) -> str:
    """An answer that cites the first passage and one that is not there."""
    return "Anna [1]. [9]"


def citing(server: ChatServer, **fields: Any) -> ChatGenerator:
    return generator(server.url, cite=True, **fields)


def test_passages_come_numbered_and_the_answer_is_measured_without_its_marks(small: SmallPipelines) -> None:
    with ChatServer(reply) as server:
        job = small(llm=citing(server), answers={"em": ExactMatch()})
        check_measures(job)
        asked = needs(job)
        rows = job.outcomes.set_index("qid")
        shown = [
            prompt for prompt in map(unframed, server.whole) if "Question: Who built the tower?\nAnswer:" in prompt
        ]
    [prompt] = shown
    passages = job.frame("used_passages").query("qid == 'q1'").sort_values("position")
    pieces = [text[:chars] for text, chars in zip(passages["text"], passages["chars"], strict=True)]
    assert len(pieces) > 1
    assert "\n\n".join(f"[{i}] {piece}" for i, piece in enumerate(pieces, 1)) in prompt
    assert job.contexts.set_index("qid")["text"]["q1"] == " ".join(pieces)  # the budget counts no number
    assert rows["answer"]["q1"] == "Anna."
    assert rows["cited_answer"]["q1"] == "Anna [1]. [9]"
    assert rows["em"]["q1"] == 1
    assert "cited_answer" in per_question(job, job.outcomes)
    # What a dry run counts are the prompts that are sent.
    assert set(asked.query("who == 'llm'")["key"]) == set(needs(job).query("who == 'llm' and known")["key"])


def test_a_reply_of_marks_alone_is_no_answer(small: SmallPipelines) -> None:
    with ChatServer(lambda prompt: " [1] [2]") as server:
        rows = small(llm=citing(server), max_missing_share=1.0).frame("answers")
    assert rows["answer"].isna().all()
    assert set(rows["status"]) == {"missing"}
    assert set(rows["error"]) == {"the answer holds no visible character"}


def test_numbers_follow_the_order_of_the_context_and_a_topic_without_passages_has_none() -> None:
    used = pd.DataFrame({"qid": ["q1", "q1"], "position": [1, 0], "text": ["second one", "first"], "chars": [6, 5]})
    contexts = pd.DataFrame({"qid": ["q2", "q1"], "n_tokens": 9, "text": ["", "first second"]})
    assert numbered_contexts(contexts, used)["text"].tolist() == ["", "[1] first\n\n[2] second"]


def test_an_order_that_cuts_first_is_numbered_as_it_stands(small: SmallPipelines) -> None:
    with ChatServer(reply) as server:
        job = small(llm=citing(server), order=LongContextOrder("first"))
        contexts = job.contexts.set_index("qid")["text"]
        for qid, text in job.shown_contexts.set_index("qid")["text"].items():
            plain = " ".join(piece.split("] ", 1)[1] for piece in text.split("\n\n"))
            assert plain == contexts[qid]


def test_citing_is_part_of_what_an_answer_is_known_by_and_not_citing_is_not() -> None:
    plain, other = generator(), generator(cite=True)
    assert "cite" not in identity.identity(plain)
    assert identity.identity(other) != identity.identity(plain)
    own = "Answer $question by $documents"
    assert identity.identity(generator(prompt_with_documents=own)) != identity.identity(
        generator(prompt_with_documents=own, cite=True)
    )
    with pytest.raises(ConfigError, match=r"llm.cite='yes': allowed are true, false"):
        generator(cite="yes")
