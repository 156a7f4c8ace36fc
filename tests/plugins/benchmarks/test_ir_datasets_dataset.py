"""Collections that a test registers with ir_datasets; no file is downloaded."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ir_datasets
import pytest
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, TrecQrels, TsvDocs, TsvQueries
from ir_datasets.util import LocalDownload

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import as_frame
from ragauge.measures import qrels_of
from ragauge.plugins.benchmarks.ir_collections import IrDatasets
from small_pipeline import SmallPipelines


class Article(NamedTuple):
    doc_id: str
    title: str
    body: str

    def default_text(self) -> str:
        return f"{self.title} {self.body}"


class Topic(NamedTuple):
    query_id: str
    title: str
    description: str

    def default_text(self) -> str:
        return self.title


class Judged(NamedTuple):
    query_id: str
    doc_id: str
    relevance: Any


class Bare(NamedTuple):
    doc_id: str
    body: str


class Docs(BaseDocs):
    def __init__(self, *rows: Any) -> None:
        self.rows = rows

    def docs_iter(self) -> Iterator[Any]:
        for row in self.rows:
            if isinstance(row, Exception):
                raise row
            yield row


class Queries(BaseQueries):
    def __init__(self, *rows: Any) -> None:
        self.rows = rows

    def queries_iter(self) -> Iterator[Any]:
        return iter(self.rows)


class Qrels(BaseQrels):
    def __init__(self, *rows: Any) -> None:
        self.rows = rows

    def qrels_iter(self) -> Iterator[Any]:
        return iter(self.rows)


DOCS = (Article("d1", "Aare", "A river."), Article("d2", "Bern", "A city."))
QUERIES = (Topic("1", "rivers", "Which river?"), Topic("2", "cities", "Which city?"))
QRELS = (Judged("1", "d1", 2), Judged("1", "d1", 1), Judged("1", "d2", 0), Judged("2", "d2", 1))


def registered(*parts: Any) -> str:
    """The id of a collection that did not exist before."""
    name = f"ragauge-test/{uuid.uuid4().hex}"
    ir_datasets.registry.register(name, ir_datasets.Dataset(*parts))
    return name


def collection(docs: Any = DOCS, queries: Any = QUERIES, qrels: Any = QRELS, **fields: Any) -> IrDatasets:
    return IrDatasets(id=registered(Docs(*docs), Queries(*queries), Qrels(*qrels)), **fields)


def test_fields_and_grades_of_the_library_s_records() -> None:
    data = collection().load()
    docs = frames.check("docs", as_frame(data.docs))
    assert docs.to_numpy().tolist() == [["d1", "Aare", "Aare A river."], ["d2", "Bern", "Bern A city."]]
    assert data.topics[["qid", "query"]].to_numpy().tolist() == [["1", "rivers"], ["2", "cities"]]
    assert qrels_of(data.evidence).to_numpy().tolist() == [["1", "d1", 2], ["2", "d2", 1]]
    assert data.skipped == ()


def test_other_fields() -> None:
    data = collection(doc_field="body", query_field="description").load()
    assert as_frame(data.docs)["text"].tolist() == ["A river.", "A city."]
    assert data.topics["query"].tolist() == ["Which river?", "Which city?"]


def test_the_library_s_own_formats(tmp_path: Path, small: SmallPipelines) -> None:
    (tmp_path / "docs.tsv").write_text("d1\tThe Aare is a river.\nd2\tBern is a city.\n")
    (tmp_path / "queries.tsv").write_text("1\twhich river\n2\twhich city\n")
    (tmp_path / "qrels").write_text("1 0 d1 1\n2 0 d2 3\n")
    name = registered(
        TsvDocs(LocalDownload(tmp_path / "docs.tsv")),
        TsvQueries(LocalDownload(tmp_path / "queries.tsv")),
        TrecQrels(LocalDownload(tmp_path / "qrels"), {}),
    )
    pipeline = small(dataset=IrDatasets(id=name, limit=1))
    assert pipeline.frame("topics")["qid"].tolist() == ["1"]
    assert pipeline.frame("docs")["text"].tolist() == ["The Aare is a river.", "Bern is a city."]
    assert pipeline.frame("evidence")["text"].tolist() == ["The Aare is a river."]


@pytest.mark.parametrize(
    ("rows", "place", "what"),
    [
        (
            {"docs": (*DOCS, Bare("d3", "x"))},
            "docs, record 3",
            "no default text .*doc_field.*are doc_id, body",
        ),
        ({"docs": (*DOCS, Article(3, "", "x"))}, "docs, record 3", "doc_id is not a string: 3"),
        ({"docs": (*DOCS, DOCS[0])}, "docs, record 3", "'d1' stands twice"),
        ({"queries": (Topic("1", " ", ""),)}, "queries, record 1, qid '1'", "the query is empty"),
        ({"queries": (Topic("1", None, ""),)}, "queries, record 1", "the default text is not a string"),
        ({"qrels": (*QRELS, Judged("1", "d2", 0.5))}, "qrels, record 5", "0.5 is no whole number"),
        ({"qrels": (*QRELS, Judged("1", None, 1))}, "qrels, record 5", "doc_id is not a string: None"),
    ],
    ids=range(7),
)
def test_bad_record_is_named(rows: dict[str, Any], place: str, what: str) -> None:
    with pytest.raises(DataError, match=f"{place}.*{what}"):
        collection(**rows).load()


def test_bad_record_is_dropped_where_asked_for() -> None:
    data = collection(docs=(*DOCS, Bare("d3", "x")), on_error="skip").load()
    assert as_frame(data.docs)["docno"].tolist() == ["d1", "d2"]
    assert "docs, record 3" in data.skipped[0]


def test_unknown_field_is_named_with_those_that_are_there() -> None:
    with pytest.raises(DataError, match=r"no field 'text' \(dataset\.query_field\); its fields are query_id"):
        collection(query_field="text").load()


def test_failure_of_the_library_is_one_line() -> None:
    with pytest.raises(DataError, match="ir_datasets could not read the docs: ConnectionError: no network"):
        collection(docs=(DOCS[0], ConnectionError("no network"))).load()


def test_id_that_is_not_there_or_lacks_something() -> None:
    with pytest.raises(ConfigError, match=r"dataset\.id is not set"):
        IrDatasets().load()
    with pytest.raises(ConfigError, match=r"dataset\.id=beir/nothing: ir_datasets [\d.]+ has no collection"):
        IrDatasets(id="beir/nothing").load()
    with pytest.raises(ConfigError, match="has no queries and no qrels"):
        IrDatasets(id=registered(Docs(*DOCS))).load()
