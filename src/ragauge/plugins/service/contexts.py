"""`retriever=service`: the contexts that a running RAG system reports."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import named, runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import BringsTexts, TopicsFailed
from ragauge.plugins.service.response import Context
from ragauge.plugins.service.service import Service
from ragauge.retrieval.passages import document_of, name_of
from ragauge.retrieval.ranking import rank_scores
from ragauge.retrieval.retrievers.ranking import rows_by_docno, say_cut

log = logging.getLogger(__name__)


@option("retriever/service")
class ServiceContexts(BringsTexts):
    """The contexts of a service in its order, each text once per topic.

    A text without a name is named by what it says. A name without a text is that of a chunk or a document of
    the corpus, which then stands for its chunks. Several texts under one name, or a text that is not the
    chunk of that name, are passages of a document of that name. Scores are taken where those of every topic
    fall; else 1 / (rank + 1) stands for them.
    service: the config's `service` (ragauge.plugins.service.service).   top_k: contexts kept per topic.
    budget, ledger: those of the service.
    """

    component = "service"
    uses = frozenset({"chat"})  # its own: `own_chat`
    counts = ("retriever_failed",)

    service: Mapping[str, Any] | None = None
    top_k: int = CONF
    budget: str | None = runtime(None)
    ledger: str | None = runtime(None)
    own_chat: Service = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        asked = Service.of(self.service, self.budget, self.ledger)
        if asked.chat["response"]["contexts"] is None:
            raise ConfigError("service.response.contexts=None: retriever=service needs the path of the contexts")
        if asked.asks_with("context"):
            raise ConfigError(
                "service.request: holds {context}, which llm=service fills in with what a retriever found; "
                "choose another retriever, or a request without it"
            )
        object.__setattr__(self, "own_chat", asked)

    @property
    def per_budget(self) -> bool:
        """Whether the request depends on n_tokens."""
        return self.own_chat.asks_with("n_tokens")

    def identity(self) -> dict[str, Any]:
        """The service without its address, and the number of contexts kept."""
        return {**named(self), "top_k": self.top_k, "service": self.own_chat.identity()}

    def describe(self, tools: Tools) -> dict[str, str]:
        """The service, as a run tag."""
        return self.own_chat.describe(tools)

    def bring(self, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Frame `run`, and [docno, text] of texts that are no chunks; one request per topic.

        DataError for a name without a text that the corpus does not have. Raises TopicsFailed with both where
        the service failed for some topics.
        """
        assert tools.chat is not None
        qids = topics["qid"].tolist()
        n_tokens = topics["n_tokens"].tolist() if self.per_budget else None
        prompts = self.own_chat.prompts(qids, topics["query"].tolist(), n_tokens, topics=topics)
        responses = [self.own_chat.response(r) for r in tools.chat.ask(prompts, tools.store, "contexts")]
        failed = [qid for qid, response in zip(qids, responses, strict=True) if response is None]
        tools.count("retriever_failed", len(failed))
        found = [(r.contexts or []) if r is not None else [] for r in responses]
        say_cut("service", list(map(len, found)), self.top_k)
        found = [contexts[: self.top_k] for contexts in found]
        run, texts = as_frames(qids, found, chunks)
        if failed:
            raise TopicsFailed(run, texts, failed)
        return run, texts


def as_frames(
    qids: Sequence[str], found: Sequence[Sequence[Context]], chunks: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Frame `run` of the topics' contexts, and [docno, text] of texts that are no chunks."""
    rows_of = rows_by_docno(chunks)
    own = dict(zip(chunks["docno"], chunks["text"], strict=True))
    docnos = chunks["docno"].tolist()
    named_texts: dict[str, set[str]] = {}
    for context in (c for contexts in found for c in contexts):
        if context.docno is not None and context.text is not None:
            named_texts.setdefault(context.docno, set()).add(context.text)
    texts: dict[str, str] = {}
    rows: list[tuple[str, str, float, int]] = []
    scored = True
    for qid, contexts in zip(qids, found, strict=True):
        hits: dict[str, float | None] = {}
        for context in contexts:
            if context.text is None:
                names = [docnos[row] for row in _rows(rows_of, str(context.docno), qid)]
                scored &= len(names) == 1
            else:
                name = _name(context.docno, context.text, own, named_texts)
                if name not in own:
                    texts[name] = context.text
                names = [name]
            for name in names:
                hits.setdefault(name, context.score)
        scores = list(hits.values())
        scored &= all(s is not None for s in scores) and scores == sorted(scores, key=lambda s: -(s or 0.0))
        rows += [(qid, name, score or 0.0, i) for i, (name, score) in enumerate(hits.items())]
    run = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])
    run = run.astype({"qid": "str", "docno": "str", "score": "float64", "rank": "int64"})
    if not scored:
        if any(c.score is not None for contexts in found for c in contexts):
            log.warning("the scores do not fall with the rank: its order alone is taken")
        run["score"] = rank_scores(run["rank"].to_numpy(dtype=np.float64))
    return run, pd.DataFrame({"docno": list(texts), "text": list(texts.values())}, dtype="str")


def _rows(rows_of: Mapping[str, list[int]], docno: str, qid: str) -> list[int]:
    if docno not in rows_of:
        raise DataError(
            f"service: docno {docno!r} of topic {qid!r} comes without a text, and is neither a document nor "
            "a chunk of this dataset; service.response.text is the path of the texts"
        )
    return rows_of[docno]


def _name(docno: str | None, text: str, own: Mapping[str, str], named_texts: Mapping[str, set[str]]) -> str:
    """The docno of a text: the service's if possible, a passage's if it belongs to another text."""
    if docno is None:
        return name_of(text)
    if own.get(docno) == text or (docno not in own and len(named_texts[docno]) == 1):
        return docno
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{document_of(docno)}%p{digest}"
