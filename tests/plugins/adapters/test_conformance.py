"""Every retriever over an engine passes `check_retriever`, and what does not conform is told."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
from langchain_core.embeddings import Embeddings

from hash_embedder import HashEmbedder
from ragauge.contract.component import Tools
from ragauge.plugins.adapters.conformance import Failed, check_retriever, compare_to_exact
from ragauge.plugins.adapters.retrievers import LangChainRetriever
from ragauge.retrieval.retrievers import BM25, Sim


class HashEmbeddings(Embeddings):
    """The tests' embedder, as LangChain wants one."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return HashEmbedder(1024).embed(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def faiss_store(documents: list[Any], k: int) -> Any:
    """A LangChain retriever over a FAISS store in memory, as a team would write it."""
    from langchain_community.vectorstores import FAISS

    return FAISS.from_documents(documents, HashEmbeddings()).as_retriever(search_kwargs={"k": k})


@pytest.fixture
def tools(store: Any, word_tokenizer: Any) -> Tools:
    # Of 1,024 dimensions, so that no two words of the corpus share one by chance.
    return Tools(store=store, embedder=HashEmbedder(1024), tokenizer=word_tokenizer)


def test_sim_and_bm25_conform_and_what_ranks_all_chunks_is_not_lexical(tools: Tools, tmp_path: Path) -> None:
    check_retriever(Sim(), tmp_path / "sim", tools, another_process=False)
    with pytest.raises(Failed, match=r"^Sim: a question of words that no chunk has has hits$"):
        check_retriever(Sim(), tmp_path / "lexical", tools, lexical=True, another_process=False)
    check_retriever(BM25(language="other"), tmp_path / "bm25", tools, lexical=True, another_process=False)


def test_langchain_over_faiss_conforms(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "conformance_team", sys.modules[__name__])
    spec = {"_target_": "conformance_team.faiss_store", "k": 20}
    check_retriever(LangChainRetriever(spec), tmp_path / "index", tools, scored=False, another_process=False)


@pytest.mark.slow
def test_sim_opened_by_another_process_conforms(tools: Tools, tmp_path: Path) -> None:
    check_retriever(Sim(), tmp_path / "index", tools)


@pytest.mark.slow
def test_the_engine_of_the_guide_conforms_by_the_guide_s_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "extending.md").read_text(encoding="utf-8")
    section = guide.split("## An engine that you run already\n", 1)[1].split("\n## ", 1)[0]
    for block in re.findall(r"^```python\n# (\S+)\n(.*?)^```", section, re.M | re.S):
        (tmp_path / block[0]).parent.mkdir(exist_ok=True)
        (tmp_path / block[0]).write_text(block[1], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_team", raising=False)
    (tmp_path / "index").mkdir()
    importlib.import_module("my_team.test_engines").test_the_engine_conforms(tmp_path / "index")


@dataclasses.dataclass(frozen=True)
class Broken(Sim):
    """`sim`, whose runs are spoilt."""

    spoil: ClassVar[Callable[[pd.DataFrame], pd.DataFrame]]

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        inner = super().transformer(chunks, folder, tools)
        return lambda topics: type(self).spoil(inner(topics))


def _lost_twin(run: pd.DataFrame) -> pd.DataFrame:
    return run[run["docno"] != "twin3"].assign(rank=lambda kept: kept.groupby("qid").cumcount())


def _one_twin_lower(run: pd.DataFrame) -> pd.DataFrame:
    last = run["docno"].eq("twin5") & run["qid"].eq("tied")
    return run.assign(score=run["score"] - last * 1e-4)


_CALLS = itertools.count()


def _again(run: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([run, run.tail(1)], ignore_index=True)


def _ties_in_the_order_of_the_rows(run: pd.DataFrame) -> pd.DataFrame:
    turned = {f"twin{i}": f"twin{5 - i}" for i in range(6)}
    return run.assign(docno=run["docno"].replace(turned))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda run: run.drop(columns="score"), "score"),
        (_again, "repeats the key"),
        (lambda run: run.assign(score=float("inf")), "not a finite number"),
        (lambda run: run.assign(score=-run["score"]), "a lower rank has a higher score"),
        (lambda run: run.iloc[::-1], "order"),
        (lambda run: run[run["qid"] != "of-chinese"], "'chinese' does not find it first"),
        (_ties_in_the_order_of_the_rows, "ordered by docno"),
        (lambda run: pd.concat([run, run.tail(1).assign(qid="empty", rank=0)]), "without letters or digits"),
        (lambda run: run.assign(docno=run["docno"].replace("alps", "mars")), "a hit is no chunk"),
        (lambda run: run.assign(rank=run["rank"] + 1), "ranks are not 0, 1, 2"),
        (lambda run: run.sort_values(["qid", "rank"]), "topics do not stand in the order"),
        (_lost_twin, "equal text are not all found before others"),
        (_one_twin_lower, "equal in score"),
        (lambda run: run.assign(score=run["score"] - next(_CALLS) * 1e-5), "asked again: other scores"),
        (
            lambda run: run[: len(run) - (run["qid"].nunique() == 1)],
            "topic of-alps alone: another run; topic tied alone: another",
        ),
        (lambda run: run[:0] if run["docno"].nunique() == 1 else run, "^Spoilt: corpus of one chunk: its text does"),
    ],
)
def test_what_does_not_conform_is_told(tools: Tools, tmp_path: Path, spoil: Any, told: str) -> None:
    broken = dataclasses.dataclass(frozen=True)(type("Spoilt", (Broken,), {"spoil": staticmethod(spoil)}))
    with pytest.raises(Failed, match=told):
        check_retriever(broken(), tmp_path / "index", tools, another_process=False)


def test_too_many_hits_and_ties_that_the_cut_off_keeps_otherwise_are_told(tools: Tools, tmp_path: Path) -> None:
    @dataclasses.dataclass(frozen=True)
    class Deep(Sim):
        def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
            return Sim(top_k=20).transformer(chunks, folder, tools)

    told = "^Deep: of tied chunks at the cut-off not the first by docno are kept; more hits come back than top_k$"
    with pytest.raises(Failed, match=told):
        check_retriever(Deep(), tmp_path / "index", tools, another_process=False)


def test_a_retriever_compared_to_itself_overlaps_in_all_and_one_that_misses_half_in_half(
    tools: Tools, tmp_path: Path
) -> None:
    chunks = pd.DataFrame({"docno": [f"d{i:02}" for i in range(40)], "text": [f"word{i} and more" for i in range(40)]})
    topics = pd.DataFrame({"qid": ["a", "b"], "query": ["word3 word7", "word9 and"]})
    same = compare_to_exact(Sim(), Sim(), chunks, topics, tmp_path / "same", tools)
    assert (same["overlap_at_10"], same["score_error"], same["topics"]) == (1, 0, 2)
    assert all(0 <= same[name] < 60 for name in ("index_seconds", "first_query_seconds"))
    assert same["queries_per_second"] > 1
    half = compare_to_exact(Sim(top_k=5), Sim(), chunks, topics, tmp_path / "half", tools)
    assert half["overlap_at_10"] == 0.5
    # What finds nothing for b overlaps in half, whose scores are off by a quarter at most.
    spoil = {
        "spoil": staticmethod(
            lambda run: run[run["qid"] == "a"].assign(score=lambda r: r["score"] + (r["rank"] == 0) / 4)
        )
    }
    lost = dataclasses.dataclass(frozen=True)(type("Spoilt", (Broken,), spoil))()
    other = compare_to_exact(lost, Sim(), chunks, topics, tmp_path / "other", tools)
    assert (other["overlap_at_10"], other["score_error"]) == (0.5, pytest.approx(0.25))
