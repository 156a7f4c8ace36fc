"""Compressors in a pipeline: what failed is asked for again, what a configuration may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from test_unreadable_parts import check_asked_again

from processes import ROOT
from ragauge.answering import NoLLM
from ragauge.answering.judges import NoJudge
from ragauge.contract.answering import Generator
from ragauge.contract.component import ChatModel, Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.replies import Reply
from ragauge.contract.workplace import Workplace
from ragauge.experiment.setup import config
from ragauge.experiment.stages.checks import check_together
from ragauge.experiment.stages.components import instantiate_components
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.plugins.compression.llm import LLMCompressor
from ragauge.plugins.compression.sentences import SentenceCompressor
from ragauge.retrieval.retrievers import Sim
from scripted_chat import unframed
from small_pipeline import DOCS, SmallPipelines
from whole import Whole


@dataclass(frozen=True)
class Copying(ChatModel, Generator):
    """A chat model that copies a passage's first sentence, and fails where the passage names a word."""

    component: ClassVar[str] = "copying"
    kind: ClassVar[str] = "chat"
    uses: ClassVar[frozenset[str]] = frozenset()

    failing: list[str] = field(default_factory=list, metadata={"runtime": True})
    asked: list[str] = field(default_factory=list, metadata={"runtime": True})

    def ask(self, prompts: Sequence[str], store: Workplace, what: str, **how: object) -> list[Reply]:
        self.asked.extend(prompts)
        passages = [unframed(prompt).split("Passage:\n")[1].split("\n\nWhat helps")[0] for prompt in prompts]
        return [
            Reply(None, "HTTP 500") if any(word in text for word in self.failing) else Reply(text.split(".")[0])
            for text in passages
        ]

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        return NoLLM().answer(topics, contexts, tools)


CHINESE = (
    "长城位于中国北方，是古代的军事防御工程。它始建于两千多年前！你去过吗？许多游客说：“太壮观了。”"
    "  Great Wall 是它的英文名。"
)


def texts_of(pipeline: Pipeline, qid: str = "q1") -> list[str]:
    passages = pipeline.frame("passages")
    found: list[str] = passages.loc[passages["qid"] == qid, "text"].tolist()
    return found


def test_the_sentence_most_like_the_question_is_left(small: SmallPipelines) -> None:
    both = small(expander=Whole(), compressor=SentenceCompressor(share=0.01), retriever=Sim(top_k=1))
    assert texts_of(both) == ["Anna built the tower."]


def test_passages_whose_reply_failed_are_asked_for_again(small: SmallPipelines) -> None:
    chat = Copying(failing=["tower"])
    parts = {"compressor": LLMCompressor(), "llm": chat, "judge": NoJudge(), "retriever": Sim(top_k=1)}
    once = small(**parts, expander=Whole())
    assert [texts_of(once, qid) for qid in ("q1", "q2")] == [[DOCS[0]["text"]], ["The bridge stands in Linz"]]
    assert once.tools.counted == {"compressor_failed": 1}
    chat.failing.clear()
    again = small(**parts, expander=Whole(), docs=DOCS)
    assert texts_of(again) == ["Anna built the tower"]
    assert again.tools.counted == {"compressor_failed": 0}
    kept = len(chat.asked)
    third = small(**parts, expander=Whole())
    assert texts_of(third) == ["Anna built the tower"]
    assert "compressed" not in third.made
    assert len(chat.asked) == kept


def test_what_could_not_be_read_is_asked_again_and_then_stored(small: SmallPipelines) -> None:
    given = {"compressor": LLMCompressor(per="topic")}
    check_asked_again("compressor", given, "passages", lambda prompt: "[1] a", small)


def test_sentences_are_compressed_with_nothing_between_neighbours(tools: Tools) -> None:
    passages = pd.DataFrame(
        {"qid": "q", "rank": [0], "docno": "d", "text": pd.Series([CHINESE], dtype="str"), "score": 1.0}
    )
    topics = pd.DataFrame({"qid": ["q"], "query": ["长城有多长？"]})
    whole = SentenceCompressor(share=1).compress(passages, topics, tools)
    assert whole["text"].tolist() == [CHINESE]


def test_a_compressor_that_asks_says_where_no_chat_model_is_chosen() -> None:
    config.register()

    def check(compressor: str, llm: str) -> None:
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            cfg = compose("config", overrides=[f"compressor={compressor}", f"llm={llm}"])
        check_together(instantiate_components(cfg), {"compressor": compressor, "llm": llm})

    with pytest.raises(ConfigError) as error:
        check("llm", "extractive")
    assert str(error.value) == (
        "compressor=llm asks a chat model, and llm=extractive is none: choose an llm that is one (ollama, "
        "openai), or a compressor that asks none"
    )
    check("llm", "ollama")
    check("sentences", "extractive")
