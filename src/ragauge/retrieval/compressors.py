"""Config group `compressor`: passages to what of them matters for the question."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_count, require_number
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.protocols import CUT, Embedder, Reply, Tools
from ragauge.llms.prompts import fill, load_prompt
from ragauge.retrieval.passages import with_texts
from ragauge.texts.sentences import sentence_spans

_BLOCK = 1 << 16  # sentences whose vectors are in memory at a time: 100 MB of 384 floats each
_DECIMALS = 12  # beyond this a sum of products depends on the processor; equal sentences stay equal


@dataclass(frozen=True)
class SentenceCompressor:
    """Keeps of a topic's passages the sentences of the highest cosine to the question, in their order.

    share: of the topic's text at most so much is kept, best sentence first; the best one always is. None is
        no limit. of: whether the share is one of characters or of sentences.
    threshold: a kept sentence has at least this cosine, in [-1, 1]; None is no threshold. Where no sentence
        of a topic reaches it, the topic has no passage left.
    depth: passages of a topic that are looked at, best first; all others are left out. None is all.
    A passage without a kept sentence is dropped. Between sentences that were not neighbours stands a space.
    Source: the extractive compressor of Xu, Shi and Choi, RECOMP, ICLR 2024, with the config's embedder.
    """

    component: ClassVar[str] = "sentences"
    kind: ClassVar[str] = "sentences"
    uses: ClassVar[frozenset[str]] = frozenset({"embedder"})

    share: float | None = 0.5
    of: Literal["characters", "sentences"] = "characters"
    threshold: float | None = None
    depth: int | None = None

    def __post_init__(self) -> None:
        require_number("compressor.share", self.share, 0, 1, above=True, null="no limit")
        require_choice("compressor.of", self.of, ("characters", "sentences"))
        require_number("compressor.threshold", self.threshold, -1, 1, null="no threshold")
        require_count("compressor.depth", self.depth, null="all passages")
        if self.share is None and self.threshold is None:
            raise ConfigError("compressor=sentences: give compressor.share, compressor.threshold, or both")

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` of what is kept; its text is that of the kept sentences."""
        texts = passages["text"].tolist()
        spans_of = {text: sentence_spans(text) for text in dict.fromkeys(texts)}
        # A row per sentence, passage by passage.
        passage = np.repeat(np.arange(len(texts)), [len(spans_of[text]) for text in texts])
        spans = [span for text in texts for span in spans_of[text]]
        sentences = [texts[row][a:b] for row, (a, b) in zip(passage, spans, strict=True)]
        topic = pd.factorize(passages["qid"])[0][passage]
        query = passages["qid"].map(topics.set_index("qid")["query"]).to_numpy(dtype=object)[passage]
        cosine = cosines(sentences, query.tolist(), tools.embedder)
        size = np.array([len(s) for s in sentences]) if self.of == "characters" else np.ones(len(sentences))
        keep = np.ones(len(sentences), dtype=bool)
        if self.share is not None:
            keep &= within_share(topic, cosine, size, self.share)
        if self.threshold is not None:
            keep &= cosine >= self.threshold
        kept: list[list[tuple[int, tuple[int, int]]]] = [[] for _ in texts]
        for row in np.flatnonzero(keep):
            kept[passage[row]].append((int(row), spans[row]))
        return with_texts(passages, [_joined(text, rows) for text, rows in zip(texts, kept, strict=True)])


def cosines(sentences: list[str], queries: list[str], embedder: Embedder) -> np.ndarray:
    """float64 [n]: the cosine of every sentence to its query; equal texts of a block are embedded once."""
    found = np.empty(len(sentences))
    for block in _blocks(len(sentences)):
        passages, which = _distinct(sentences[block])
        asked, by = _distinct(queries[block])
        left = embedder.embed(passages).astype(np.float64)
        right = embedder.embed(asked, "query").astype(np.float64)
        found[block] = np.einsum("ij,ij->i", left[which], right[by]).round(_DECIMALS)
    return found


def within_share(topic: np.ndarray, score: np.ndarray, size: np.ndarray, share: float) -> np.ndarray:
    """bool [n]: the rows of highest score of every topic, whose sizes add up to at most `share` of all of it.

    Taken one after the other until the next would be too much; the best row of a topic always is. Equals are
    taken in their order. topic: int64 [n], ascending from 0.
    """
    if len(topic) == 0:
        return np.zeros(0, dtype=bool)
    order = np.lexsort((-score, topic))
    taken = np.cumsum(size[order])
    first = np.searchsorted(topic, topic)  # ascending: where the rows of the topic begin
    before = taken[first] - size[order][first]
    allowed = share * np.bincount(topic, size)[topic]
    fits = (taken - before <= allowed * (1 + 1e-12)) | (first == np.arange(len(topic)))
    keep = np.zeros(len(topic), dtype=bool)
    keep[order[fits]] = True
    return keep


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK))


def _distinct(texts: list[str]) -> tuple[list[str], np.ndarray]:
    """The distinct texts, and of every text the number of its own."""
    number: dict[str, int] = {}
    which = np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.int64)
    return list(number), which


def _joined(text: str, rows: list[tuple[int, tuple[int, int]]]) -> str:
    """The text of the sentences [(row, span)]; neighbours keep what stands between them."""
    runs = [[span for _, (_, span) in group] for _, group in groupby(enumerate(rows), lambda r: r[1][0] - r[0])]
    return " ".join(text[run[0][0] : run[-1][1]] for run in runs)


log = logging.getLogger(__name__)

_NOTHING = re.compile(r"\W*(?:none|no[ _]output)\W*", re.IGNORECASE)
_NUMBER = re.compile(r"^[ \t]*\[(\d{1,4})\][ \t]*:?", re.MULTILINE)


@dataclass(frozen=True)
class LLMCompressor:
    """What the job's chat model copies from a topic's passages; needs an llm that is one.

    per: `passage` asks once for every passage, `topic` once for all passages of a topic, numbered.
    depth: passages of a topic that are shown, best first; all others are left out. None is all.
    prompt: a text with $question and $passage (per=topic: $passages), or a .txt file of it; None is the
    shipped one. It must ask for the word NONE where nothing helps, and with per=topic for `[number]` before
    what comes from a passage.
    A passage of which nothing helps is dropped. Where a reply failed, was cut, or with per=topic names no
    passage and is not NONE, its passages stay whole: they are counted (`compressor_failed`), marked in the
    column `failed`, and asked for again in a rerun. A topic's text is whatever the model wrote: it is not
    checked against the passage.
    """

    component: ClassVar[str] = "llm"
    version: ClassVar[int] = 2
    kind: ClassVar[str] = "llm"
    uses: ClassVar[frozenset[str]] = frozenset({"chat"})
    needs_chat: ClassVar[bool] = True
    counts: ClassVar[tuple[str, ...]] = ("compressor_failed",)

    per: Literal["passage", "topic"] = "passage"
    depth: int | None = 10
    prompt: str | None = None

    def __post_init__(self) -> None:
        require_choice("compressor.per", self.per, ("passage", "topic"))
        require_count("compressor.depth", self.depth, null="all passages")
        shown = "passages" if self.per == "topic" else "passage"
        file = f"compress_{self.per}.txt"
        prompt = load_prompt(self.prompt, file, ("question", shown), key="compressor.prompt")
        object.__setattr__(self, "prompt", prompt)  # the text is part of the identity

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` of what was copied, with the column `failed`.

        MissingError where every reply failed, ConfigError where there is no chat model.
        """
        if tools.chat is None:
            raise ConfigError("compressor=llm needs an llm that is a chat model (ollama, openai)")
        passages = passages.reset_index(drop=True)
        every = np.arange(len(passages))
        opens = every[1:]
        if self.per == "topic":
            topic = pd.factorize(passages["qid"])[0]
            opens = opens[topic[1:] != topic[:-1]]
        rows = np.split(every, opens) if len(every) else []
        texts = passages["text"].tolist()
        question = topics.set_index("qid")["query"]
        prompts = [
            self._request(str(question[passages["qid"].iloc[own[0]]]), [texts[row] for row in own]) for own in rows
        ]
        readers = [partial(self._read, n=len(own)) for own in rows]
        replies = tools.chat.ask(prompts, tools.store, "compress", readers=readers) if prompts else []
        failed = np.zeros(len(passages), dtype=bool)
        errors = []
        for own, reply in zip(rows, replies, strict=True):
            copied = self._read(reply, len(own))
            if copied is None:
                failed[own] = True
                errors.append(reply.error or "no passage is named in it")
                continue
            for row, text in zip(own, copied, strict=True):
                texts[row] = text
        if errors:
            counts = f"{len(errors)} of {len(replies)}"
            if len(errors) == len(replies):
                raise MissingError(f"compressor=llm: {counts} replies failed ({errors[0]})")
            log.warning("compressor=llm: %s replies failed, their passages stay whole (%s)", counts, errors[0])
        tools.count("compressor_failed", int(failed.sum()))
        return with_texts(passages.assign(failed=failed), texts)

    def _request(self, question: str, texts: list[str]) -> str:
        if self.per == "passage":
            return fill(str(self.prompt), question=question, passage=texts[0])
        # A line each, so that no passage can pass for the next one.
        numbered = "\n\n".join(f"[{number}] {' '.join(text.split())}" for number, text in enumerate(texts, 1))
        return fill(str(self.prompt), question=question, passages=numbered)

    def _read(self, reply: Reply, n: int) -> list[str] | None:
        """What was copied from each of the n passages, "" where nothing was; None of a reply that failed."""
        if reply.text is None or reply.error == CUT:
            return None
        if _NOTHING.fullmatch(reply.text):
            return [""] * n
        return [reply.text.strip()] if self.per == "passage" else copied_by_number(reply.text, n)


def copied_by_number(reply: str, n: int) -> list[str] | None:
    """What stands behind each number `[1]` to `[n]` at the beginning of a line, "" where nothing does.

    A number that comes twice has both texts, one after the other; what stands before the first number or
    behind one that there is not is passed over. None where no number is one of a passage.
    """
    parts = _NUMBER.split(reply)
    found: dict[int, list[str]] = {}
    for number, text in zip(parts[1::2], parts[2::2], strict=True):
        if 1 <= int(number) <= n:
            found.setdefault(int(number), []).append("" if _NOTHING.fullmatch(text) else text.strip())
    if not found:
        return None
    return [" ".join(filter(None, found.get(number, []))) for number in range(1, n + 1)]


@dataclass(frozen=True)
class NoCompressor:
    """Leaves the passages as they are; the stage is left out."""

    component: ClassVar[str] = "none"
    kind: ClassVar[str] = "none"
    uses: ClassVar[frozenset[str]] = frozenset()

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """The passages themselves."""
        return passages
