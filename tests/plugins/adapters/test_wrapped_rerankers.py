"""`reranker=langchain` and `reranker=pyterrier`: what they get, and what is made of what they return."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from langchain_core.documents import BaseDocumentCompressor, Document

from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.plugins.adapters.rerankers import LangChainReranker, PyTerrierReranker
from ragauge.retrieval.ranking import check_reranked

TOPICS = pd.DataFrame({"qid": ["q2", "q1"], "query": ["two", "one"]})
CHUNKS = pd.DataFrame({"docno": list("abc"), "text": ["x", "xxx", "xx"]})
RUN = pd.DataFrame(
    {
        "qid": ["q2"] * 3 + ["q1"] * 3,
        "docno": list("abcabc"),
        "score": [3.0, 2.0, 1.0] * 2,
        "rank": [0, 1, 2] * 2,
    }
)


class ByLength(BaseDocumentCompressor):
    """The longest documents first; `keep` of them, with their docnos or others."""

    keep: int = 9
    docnos: dict[str, Any] = {}  # noqa: RUF012

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        ordered = sorted(documents, key=lambda d: -len(d.page_content))[: self.keep]
        given = [self.docnos.get(d.metadata["docno"], d.metadata["docno"]) for d in ordered]
        return [Document(page_content="changed", metadata={} if docno is None else {"docno": docno}) for docno in given]


def by_length(share: float = 1.0, columns: Sequence[str] = ("qid", "docno", "score")) -> Any:
    """A transformer that scores a hit by the letters of its text, and returns rows in another order."""

    def score(run: pd.DataFrame) -> pd.DataFrame:
        assert list(run.columns) == ["qid", "query", "docno", "text", "score", "rank"]
        return run.assign(score=share * run["text"].str.len())[::-1][[*columns]]

    return pt.apply.generic(score)


def constant(value: float) -> Any:
    return pt.apply.generic(lambda run: run.assign(score=value))


def twice() -> Any:
    return pt.apply.generic(lambda run: pd.concat([run, run]))


def foreign() -> Any:
    return pt.apply.generic(lambda run: run.assign(docno="z" + run["docno"]))


def langchain(depth: int = 30, top_k: int | None = None, **fields: Any) -> LangChainReranker:
    return LangChainReranker({"_target_": "team.ByLength", **fields}, depth, top_k)


def pyterrier(function: str, depth: int = 30, top_k: int | None = None, **fields: Any) -> PyTerrierReranker:
    return PyTerrierReranker({"_target_": f"team.{function}", **fields}, depth, top_k)


def order(made: pd.DataFrame) -> dict[str, str]:
    check_reranked(RUN, made, "it")
    return made.groupby("qid", sort=False)["docno"].agg("".join).to_dict()


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This file under a name that a `_target_` finds."""
    monkeypatch.setitem(sys.modules, "team", sys.modules[__name__])


@pytest.mark.parametrize("part", [langchain, lambda **given: pyterrier("by_length", **given)])
def test_hits_are_in_the_order_that_it_gives(part: Any, tools: Tools) -> None:
    made = part().rerank(RUN, TOPICS, CHUNKS, tools)
    assert list(order(made).items()) == [("q2", "bca"), ("q1", "bca")]
    assert order(part(depth=2).rerank(RUN, TOPICS, CHUNKS, tools)) == {"q2": "ba", "q1": "ba"}
    assert order(part(depth=3, top_k=1).rerank(RUN, TOPICS, CHUNKS, tools)) == {"q2": "b", "q1": "b"}
    assert part().rerank(RUN[:0], TOPICS, CHUNKS, tools).empty


def test_scores_are_the_transformer_s_or_of_the_rank(tools: Tools) -> None:
    by_rank = langchain().rerank(RUN, TOPICS, CHUNKS, tools)
    assert by_rank["score"].tolist() == [1, 1 / 2, 1 / 3] * 2
    own = pyterrier("by_length", share=0.5).rerank(RUN, TOPICS, CHUNKS, tools)
    assert own["score"].tolist() == [1.5, 1.0, 0.5] * 2
    ties = pyterrier("constant", value=7.0).rerank(RUN, TOPICS, CHUNKS, tools)
    assert order(ties) == {"q2": "abc", "q1": "abc"}


def test_a_compressor_may_keep_fewer(tools: Tools) -> None:
    assert order(langchain(keep=2).rerank(RUN, TOPICS, CHUNKS, tools)) == {"q2": "bc", "q1": "bc"}


@pytest.mark.parametrize(
    ("part", "error", "says"),
    [
        (lambda: langchain(docnos={"b": None}), DataError, "has no metadata"),
        (lambda: langchain(docnos={"b": "c"}), DataError, "docno='c' is returned twice"),
        (lambda: langchain(docnos={"b": "z"}), DataError, "docno='z' is not in the run"),
        (lambda: pyterrier("by_length", columns=["qid", "docno"]), DataError, "column score is missing"),
        (lambda: pyterrier("constant", value=np.nan), DataError, "has no finite score"),
        (lambda: pyterrier("twice"), DataError, "is returned twice"),
        (lambda: pyterrier("foreign"), DataError, "docno='za' is not in the run"),
        (
            lambda: LangChainReranker({"_target_": "builtins.dict"}),
            ConfigError,
            "is no LangChain BaseDocumentCompressor",
        ),
        (
            lambda: PyTerrierReranker({"_target_": "builtins.dict"}),
            ConfigError,
            "is no PyTerrier transformer",
        ),
        (lambda: PyTerrierReranker({"_target_": "no.such"}), ConfigError, r"reranker\.transformer\._target_"),
        (lambda: langchain(depth=1, top_k=2), ConfigError, r"reranker\.top_k=2: allowed are 1 to"),
    ],
)
def test_what_is_wrong_is_one_line(part: Any, error: type[Exception], says: str, tools: Tools) -> None:
    with pytest.raises(error, match=says) as caught:
        check_reranked(RUN, part().rerank(RUN, TOPICS, CHUNKS, tools), "it")
    assert "\n" not in str(caught.value)


def test_code_and_revision_are_part_of_what_it_is_known_by() -> None:
    known = identity(langchain())
    assert known["code"]
    spec, cut = {"_target_": "builtins.dict"}, {"version": 1, "depth": 30, "top_k": None, "revision": 1}
    assert identity(LangChainReranker(spec)) == {"component": "langchain", "compressor": spec, **cut}
    assert identity(PyTerrierReranker(spec)) == {"component": "pyterrier", "transformer": spec, **cut}
    assert identity(LangChainReranker(langchain().compressor, revision=2)) != known
    assert identity(langchain(keep=2)) != known
