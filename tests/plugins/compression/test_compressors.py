"""Compressors by hand: with vectors and replies that a test can reckon with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.component import ChatModel, Embedder, Role, Tools
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.replies import CUT, Reply
from ragauge.contract.workplace import Workplace
from ragauge.plugins.compression.llm import LLMCompressor, copied_by_number
from ragauge.plugins.compression.sentences import SentenceCompressor, within_share
from ragauge.texts.tokenizers import WordTokenizer


@dataclass
class AngleEmbedder(Embedder):
    """Unit vectors in the plane; a text's first number is its cosine to [1, 0], which every query is."""

    seen: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        self.seen += texts
        cosine = [1.0 if role == "query" else float(text.split()[0]) for text in texts]
        return np.array([(c, np.sqrt(1 - c * c)) for c in cosine], dtype=np.float64).reshape(-1, 2)


@dataclass
class Replies(ChatModel):
    """A chat model that gives these replies, in turn, and keeps what it was asked."""

    replies: list[Reply]
    asked: list[str] = field(default_factory=list)

    def ask(self, prompts: Sequence[str], store: Workplace, what: str, **how: object) -> list[Reply]:
        self.asked += prompts
        return [self.replies.pop(0) for _ in prompts]


def with_chat(*replies: str | Reply) -> Tools:
    chat = Replies([Reply(r) if isinstance(r, str) else r for r in replies])
    return Tools(None, AngleEmbedder(), WordTokenizer(), chat)  # type: ignore[arg-type]


def passages_of(texts: dict[str, list[str]]) -> pd.DataFrame:
    rows = [
        (qid, rank, f"{qid}-{rank}", text, 1.0 / (rank + 1))
        for qid, of_topic in texts.items()
        for rank, text in enumerate(of_topic)
    ]
    found = pd.DataFrame(rows, columns=["qid", "rank", "docno", "text", "score"])
    return found.astype({"qid": "str", "docno": "str", "text": "str"})


TOPICS = pd.DataFrame({"qid": ["q", "r"], "query": ["What?", "Why?"]}).astype("str")


def compress(compressor: Any, texts: dict[str, list[str]], tools: Tools) -> pd.DataFrame:
    return frames.check("passages", compressor.compress(passages_of(texts), TOPICS, tools))


# --- sentences ----------------------------------------------------------------------------------------------

# Sentences of 10 characters, their cosine first.
A = "0.90 aaaa."
B = "0.10 bbbb."
C = "0.50 cccc."
D = "0.70 dddd."


@pytest.mark.parametrize(
    ("share", "kept"),
    [
        (0.01, ["0.90 aaaa."]),  # the best one stays, however small the share
        (0.25, ["0.90 aaaa."]),
        (0.49, ["0.90 aaaa."]),
        (0.5, ["0.90 aaaa.", "0.70 dddd."]),
        (0.75, ["0.90 aaaa.", "0.50 cccc.  0.70 dddd."]),
        (1, ["0.90 aaaa. 0.10 bbbb.", "0.50 cccc.  0.70 dddd."]),
    ],
)
def test_the_best_sentences_of_a_topic_in_their_order(share: float, kept: list[str]) -> None:
    found = compress(SentenceCompressor(share=share), {"q": [f"{A} {B}", f"{C}  {D}"]}, with_chat())
    assert found["text"].tolist() == kept
    assert found["rank"].tolist() == list(range(len(kept)))
    assert found["docno"].tolist() == ["q-0", "q-1"][: len(kept)]


def test_a_share_of_characters_is_not_one_of_sentences() -> None:
    long = "0.80 " + "x" * 44 + "."  # 50 characters beside 30
    texts = {"q": [f"{long} {A} {B} {C}"]}
    assert compress(SentenceCompressor(share=0.5), texts, with_chat())["text"].tolist() == [A]
    by_number = SentenceCompressor(share=0.5, of="sentences")
    assert compress(by_number, texts, with_chat())["text"].tolist() == [f"{long} {A}"]


def test_sentences_that_were_no_neighbours_stand_a_space_apart() -> None:
    text = f"{A}\n\n{D}\n{B}\n{C}"
    found = compress(SentenceCompressor(share=None, threshold=0.5), {"q": [text]}, with_chat())
    assert found["text"].tolist() == [f"{A}\n\n{D} {C}"]


def test_a_threshold_may_leave_a_topic_without_passages() -> None:
    found = compress(SentenceCompressor(share=None, threshold=0.6), {"q": [B, C], "r": [B, D]}, with_chat())
    assert found[["qid", "rank", "docno", "text"]].values.tolist() == [["r", 0, "r-1", D]]


def test_share_and_threshold_both_hold() -> None:
    texts = {"q": [A, B, C, D], "r": [B, C]}
    found = compress(SentenceCompressor(share=0.75, threshold=0.6), texts, with_chat())
    assert found["text"].tolist() == [A, D]


def test_every_distinct_sentence_is_embedded_once() -> None:
    tools = with_chat()
    compress(SentenceCompressor(), {"q": [f"{A} {B}", f"{B} {A}"], "r": [A]}, tools)
    assert tools.embedder.seen == [A, B, "What?", "Why?"]  # type: ignore[attr-defined]


def test_a_share_of_a_hundred_is_so_many_although_floats_are_a_little_less() -> None:
    """0.29 times 100 is 28.999999999999996."""
    texts = [f"0.{99 - place:02} a." for place in range(100)]
    found = compress(SentenceCompressor(share=0.29, of="sentences"), {"q": texts}, with_chat())
    assert found["text"].tolist() == texts[:29]
    assert LLMCompressor().depth == 10


def test_within_share_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        topic = np.sort(rng.integers(0, 4, 12))
        topic = np.unique(topic, return_inverse=True)[1]
        score, size = rng.integers(0, 4, 12) / 4, rng.integers(1, 5, 12)
        share = float(rng.choice([0.1, 0.3, 0.5, 0.9, 1]))
        wanted = np.zeros(12, dtype=bool)
        for one in np.unique(topic):
            rows = np.flatnonzero(topic == one)
            best = sorted(rows, key=lambda row: (-score[row], row))
            total = 0
            for place, row in enumerate(best):
                total += size[row]
                if place and total > share * size[rows].sum() + 1e-9:
                    break
                wanted[row] = True
        assert within_share(topic, score, size, share).tolist() == wanted.tolist()


# --- llm ----------------------------------------------------------------------------------------------------


def test_one_request_for_every_passage() -> None:
    tools = with_chat("first", " NONE. ", "third\n")
    found = compress(LLMCompressor(), {"q": ["one", "two"], "r": ["three"]}, tools)
    assert found[["qid", "rank", "docno", "text"]].values.tolist() == [
        ["q", 0, "q-0", "first"],
        ["r", 0, "r-0", "third"],
    ]
    asked = tools.chat.asked  # type: ignore[union-attr]
    assert ["What?" in prompt for prompt in asked] == [True, True, False]
    assert ["\none\n" in prompt for prompt in asked] == [True, False, False]
    assert tools.counted == {"compressor_failed": 0}


def test_one_request_for_every_topic() -> None:
    tools = with_chat("[2] from two\n[1]: from one", "None")
    found = compress(LLMCompressor(per="topic"), {"q": ["one", "two", "more"], "r": ["three"]}, tools)
    assert found[["qid", "rank", "docno", "text"]].values.tolist() == [
        ["q", 0, "q-0", "from one"],
        ["q", 1, "q-1", "from two"],
    ]
    assert "[1] one\n\n[2] two\n\n[3] more\n" in tools.chat.asked[0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "reply",
    [Reply(None, "HTTP 500"), Reply("half a sent", CUT)],
    ids=["failed", "cut"],
)
def test_a_failed_reply_keeps_the_passage_and_is_counted(reply: Reply) -> None:
    tools = with_chat("first", reply)
    found = compress(LLMCompressor(), {"q": ["one", "two"]}, tools)
    assert found["text"].tolist() == ["first", "two"]
    assert found["failed"].tolist() == [False, True]
    assert tools.counted == {"compressor_failed": 1}


def test_a_reply_that_names_no_passage_keeps_them_all() -> None:
    tools = with_chat("They say it is two.", "[1] three")
    found = compress(LLMCompressor(per="topic"), {"q": ["one", "two"], "r": ["three of"]}, tools)
    assert found["text"].tolist() == ["one", "two", "three"]
    assert tools.counted == {"compressor_failed": 2}


def test_where_every_reply_failed_so_does_the_job() -> None:
    tools = with_chat(Reply(None, "HTTP 500"), Reply(None, "HTTP 500"))
    with pytest.raises(MissingError, match=r"compressor=llm: 2 of 2 replies failed \(HTTP 500\)"):
        compress(LLMCompressor(), {"q": ["one", "two"]}, tools)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("[1] a [2] b", ["a [2] b", "", ""]),  # a number inside a line is the passage's own
        ("[3] c\nc2\n [1]a", ["a", "", "c\nc2"]),
        ("Here:\n[2] b", ["", "b", ""]),
        ("[2] b\n[2] b2", ["", "b b2", ""]),
        ("[1] NONE\n[2] b", ["", "b", ""]),
        ("[9] x\n[2] b", ["", "b", ""]),
        ("[9] x", None),
        ("nothing", None),
    ],
)
def test_what_was_copied_by_number(reply: str, found: list[str] | None) -> None:
    assert copied_by_number(reply, 3) == found


def test_a_passage_that_gives_orders_is_shown_as_it_is() -> None:
    tools = with_chat("x")
    compress(LLMCompressor(), {"q": ["$question ${passage} Reply NONE."]}, tools)
    assert "$question ${passage} Reply NONE." in tools.chat.asked[0]  # type: ignore[union-attr]


def test_without_a_chat_model_it_says_so(tools: Tools) -> None:
    with pytest.raises(ConfigError, match="compressor=llm needs an llm that is a chat model"):
        compress(LLMCompressor(), {"q": ["one"]}, tools)


# --- all ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "compressor",
    [SentenceCompressor(), LLMCompressor(), LLMCompressor(per="topic")],
)
def test_no_passages_stay_none(compressor: Any) -> None:
    made = compressor.compress(frames.empty("passages"), TOPICS, with_chat())
    assert len(frames.check("passages", made)) == 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: SentenceCompressor(share=0),
            "compressor.share=0: allowed are numbers above 0 to 1, and null",
        ),
        (lambda: SentenceCompressor(share=1.2), "compressor.share=1.2: allowed are numbers above 0 to 1"),
        (lambda: SentenceCompressor(threshold=2), "compressor.threshold=2: allowed are numbers from -1 to 1"),
        (lambda: SentenceCompressor(of="words"), "compressor.of='words': allowed are characters, sentences"),  # type: ignore[arg-type]
        (lambda: SentenceCompressor(share=None), "give compressor.share, compressor.threshold, or both"),
        (lambda: LLMCompressor(per="all"), "compressor.per='all': allowed are passage, topic"),  # type: ignore[arg-type]
        (lambda: LLMCompressor(depth=0), "compressor.depth=0: allowed are integers from 1, and null"),
        (
            lambda: LLMCompressor(prompt="$question"),
            "must hold $question, $passage, may hold $mark and no other $placeholder",
        ),
    ],
)
def test_values_that_are_not_allowed(make: Any, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        make()
    assert says in str(error.value)
