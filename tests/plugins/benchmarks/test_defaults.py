"""Every data set's defaults in one table: what its key holds where nothing is set."""

from __future__ import annotations

from typing import Any

import ir_datasets

from ragauge.contract.identity import identity
from ragauge.plugins.benchmarks.answer_scripts import HotpotF1, Squad2
from ragauge.plugins.benchmarks.beir import Beir
from ragauge.plugins.benchmarks.crag import CRAG
from ragauge.plugins.benchmarks.dpr import DPR
from ragauge.plugins.benchmarks.hotpotqa import HotpotQA, TwoWikiMultihopQA
from ragauge.plugins.benchmarks.huggingface import HuggingFace
from ragauge.plugins.benchmarks.ir_collections import IrDatasets
from ragauge.plugins.benchmarks.musique import MuSiQue
from ragauge.plugins.benchmarks.ragbench import RAGBench
from ragauge.plugins.benchmarks.squad import SQuAD
from ragauge.plugins.benchmarks.trec import Trec

JUDGED = {"evidence": "documents", "min_relevance": 1}
COLUMNS = (
    "subset", "split", "docs_subset", "docs_split", "qid_column", "contexts_column", "evidence_column",
    "relevant_column", "unanswerable_column", "title_column",
)  # fmt: skip
DEFAULTS: list[tuple[Any, str, int, dict[str, Any]]] = [
    (Beir(), "beir", 1, {**JUDGED, "split": "test", "title_in_text": True}),
    (Trec(), "trec", 2, {**JUDGED, "query_field": "title", "encoding": "utf-8", "title_in_text": True}),
    (IrDatasets(), "ir_datasets", 1, {**JUDGED, "id": None, "doc_field": None, "query_field": None}),
    (
        HuggingFace(), "huggingface", 3,
        {
            **dict.fromkeys(COLUMNS), "question_column": "question", "answer_column": "answer", "docno_column": "id",
            "text_column": "text", "attribute_columns": [],
        },
    ),
    (CRAG(), "crag", 1, {"documents": "snippets", "invalid": "unanswerable"}),
    (DPR(), "dpr", 1, {"evidence": "first"}),
    (HotpotQA(), "hotpotqa", 1, {}),
    (TwoWikiMultihopQA(), "2wikimultihopqa", 1, {}),
    (MuSiQue(), "musique", 1, {"questions": None}),
    (RAGBench(), "ragbench", 1, {}),
    (SQuAD(), "squad", 2, {"evidence": "first"}),
]  # fmt: skip


def test_what_a_key_holds_where_nothing_is_set() -> None:
    for source, name, version, fields in DEFAULTS:
        found = identity(source)
        if name == "ir_datasets":
            assert found.pop("library") == ir_datasets.__version__
        assert found == {"component": name, "version": version, "on_error": "raise", "limit": None, **fields}
        where = {"id": "a"} if name == "ir_datasets" else {"path": "a"} if name != "trec" else {"docs": "a"}
        if name not in ("ir_datasets", "huggingface"):  # where the files lie is no part of it
            assert identity(type(source)(**where)) == found
    assert identity(Beir(own_document="keep"))["own_document"] == "keep"
    for measure, name in ((HotpotF1(), "hotpotqa_f1"), (Squad2(), "squad2")):
        assert identity(measure) == {"component": name, "version": 1}
