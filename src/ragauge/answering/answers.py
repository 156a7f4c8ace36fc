"""Config group `llm`: answers from contexts, by a chat model, by a rule, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.protocols import Reply, Tools
from ragauge.llms.chat import CUT, ChatLLM
from ragauge.llms.prompts import fill, load_prompt
from ragauge.texts.sentences import sentence_spans

_ROWS_AT_ONCE = 1 << 16  # pairs of vectors that are multiplied at a time: 100 MB of 384 floats each

_WHOLE = re.compile(r"""[.!?…。！？]["'”’»」』）)\]]*\Z""")  # how a sentence that was not cut ends

LACK_OF_INFORMATION = "The documents do not hold enough information to answer the question."


@dataclass(frozen=True)
class ChatGenerator(ChatLLM):
    """Answers of a chat model, from the context where there is one, else from what the model knows.

    A context without any text (no retrieval, no hits, n_tokens=0) gets the prompt without documents.
    An answer that was cut at the token limit is kept with status `cut`; where no reply came after all
    retries, the answer is null with status `missing` and its error.
    prompt_with_documents ($documents, $question), prompt_without_documents ($question): a text, or the name
        of a .txt file; null for the shipped one.
    """

    kind: ClassVar[str] = "chat"
    uses: ClassVar[frozenset[str]] = frozenset()

    prompt_with_documents: str | None = None
    prompt_without_documents: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # Into the fields, so that the texts are part of the identity.
        shipped = {"prompt_with_documents": "answer_with_documents.txt",
                   "prompt_without_documents": "answer_without_documents.txt"}  # fmt: skip
        for name, placeholders in (
            ("prompt_with_documents", ("documents", "question")),
            ("prompt_without_documents", ("question",)),
        ):
            object.__setattr__(self, name, load_prompt(getattr(self, name), shipped[name], placeholders))

    def identity(self) -> dict[str, Any]:
        """The model and both prompts."""
        return {
            **super().identity(),
            "prompt_with_documents": self.prompt_with_documents,
            "prompt_without_documents": self.prompt_without_documents,
        }

    def prompts(self, topics: pd.DataFrame, contexts: pd.DataFrame) -> list[str]:
        """The prompt of every row of `contexts`."""
        return [
            fill(str(self.prompt_with_documents), documents=text, question=query)
            if text.strip()
            else fill(str(self.prompt_without_documents), question=query)
            for query, text in zip(_queries(topics, contexts), contexts["text"], strict=True)
        ]

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`; status ok, cut or missing."""
        replies = self.ask(self.prompts(topics, contexts), tools.store, "answers")
        return _answers(contexts, replies)


@dataclass(frozen=True)
class Extractive:
    """Answers made of the context's sentences that are most like the question: a stand-in, no language model.

    n_sentences: at most so many, in the order of the context.
    threshold: cosine similarity to the question in [-1, 1] that a sentence must reach; where none does, the
        answer is LACK_OF_INFORMATION, and so it is for a context without text.
    """

    kind: ClassVar[str] = "embedded"
    uses: ClassVar[frozenset[str]] = frozenset({"embedder"})

    n_sentences: int = 3
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.n_sentences, int) or self.n_sentences < 1:
            raise ConfigError(f"llm.n_sentences: {self.n_sentences!r} is not an integer of at least 1")
        if not -1 <= self.threshold <= 1:
            raise ConfigError(f"llm.threshold: {self.threshold!r} is not a cosine in [-1, 1]")

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`; every status is ok, no tokens and no cost."""
        queries = _queries(topics, contexts)
        sentences = {text: _sentences(text) for text in contexts["text"].unique()}
        of_rows = [sentences[text] for text in contexts["text"]]
        texts = list(dict.fromkeys([*queries, *(s for found in sentences.values() for s in found)]))
        number = {text: i for i, text in enumerate(texts)}
        vectors = tools.embedder.embed(texts, tools.store)
        row = np.repeat(np.arange(len(of_rows)), [len(found) for found in of_rows])
        sentence = np.array([number[s] for found in of_rows for s in found], dtype=np.int64)
        query = np.array([number[q] for q in queries], dtype=np.int64)[row]
        best = _best(row, _cosines(vectors, sentence, query), self.n_sentences, self.threshold)
        chosen: list[list[str]] = [[] for _ in of_rows]
        for i in best:
            chosen[row[i]].append(texts[sentence[i]])
        return _answers(contexts, [Reply(" ".join(found) or LACK_OF_INFORMATION) for found in chosen])


@dataclass(frozen=True)
class NoLLM:
    """No answers: retrieval alone is measured."""

    kind: ClassVar[str] = "none"
    uses: ClassVar[frozenset[str]] = frozenset()

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers` without answers; every status is none."""
        return _answers(contexts, [Reply(None)] * len(contexts), no_reply="none")


def _queries(topics: pd.DataFrame, contexts: pd.DataFrame) -> list[str]:
    """The question of every row of `contexts`; DataError for a context of no topic."""
    queries = contexts["qid"].map(topics.set_index("qid")["query"])
    if queries.isna().any():
        raise DataError(f"contexts frame: qid {contexts['qid'][queries.isna()].iloc[0]!r} is in no topic")
    return queries.tolist()


def _sentences(text: str) -> list[str]:
    """The distinct whole sentences of a text, in order, white space folded; chunks that overlap repeat some.

    The budget mostly cuts the last sentence; what is left of it is not quoted where there are others.
    """
    found = [" ".join(text[a:b].split()) for a, b in sentence_spans(text)]
    if len(found) > 1 and not _WHOLE.search(found[-1]):
        found.pop()
    return list(dict.fromkeys(found))


def _cosines(vectors: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """float64 [pairs]: inner products of the vectors numbered left[i] and right[i]."""
    cosines = np.empty(len(left))
    for start in range(0, len(left), _ROWS_AT_ONCE):
        at = slice(start, start + _ROWS_AT_ONCE)
        cosines[at] = np.einsum("ij,ij->i", vectors[left[at]], vectors[right[at]])
    return cosines


def _best(row: np.ndarray, cosine: np.ndarray, n: int, threshold: float) -> np.ndarray:
    """Positions of the n largest cosines of each row at or above the threshold; ties in order of position."""
    order = np.lexsort((-cosine, row))
    first = np.searchsorted(row, row)  # rows are ascending: where each begins
    rank = np.arange(len(row)) - first[order]
    return np.sort(order[(rank < n) & (cosine[order] >= threshold)])


def _answers(contexts: pd.DataFrame, replies: Sequence[Reply], no_reply: str = "missing") -> pd.DataFrame:
    status = [no_reply if r.text is None else ("cut" if r.error == CUT else "ok") for r in replies]
    return pd.DataFrame(
        {
            "qid": contexts["qid"].to_numpy(),
            "n_tokens": contexts["n_tokens"].to_numpy(),
            "answer": pd.array([r.text for r in replies], dtype="str"),
            "status": pd.array(status, dtype="str"),
            "error": pd.array([r.error for r in replies], dtype="str"),
            "prompt_tokens": np.array([r.prompt_tokens for r in replies], dtype=np.int64),
            "completion_tokens": np.array([r.completion_tokens for r in replies], dtype=np.int64),
            "cost_usd": np.array([r.cost_usd for r in replies], dtype=float),
            "seconds": np.array([r.seconds for r in replies], dtype=float),
            "cached": np.array([r.cached for r in replies], dtype=bool),
        }
    )
