from __future__ import annotations

from ragauge.contract import frames
from ragauge.contract.identity import identity
from ragauge.datasets import CsvDataset, JsonlDataset, SampleDataset, SamplesDataset
from ragauge.texts.sentences import sentence_spans


def test_what_the_key_of_a_source_holds_where_nothing_is_set() -> None:
    columns = {
        "docno_column": "id", "title_column": "title", "text_column": "text", "qid_column": None,
        "query_column": "question", "answer_column": "answer", "evidence_column": "text_ids", "attribute_columns": [],
    }  # fmt: skip
    for source, name, version, fields in (
        (CsvDataset(), "csv", 4, columns),
        (JsonlDataset(), "jsonl", 4, {}),
        (SamplesDataset(), "samples", 3, {}),
        (SampleDataset(), "sample", 1, {}),
    ):
        known = {"component": name, "version": version, "on_error": "raise", "limit": None}
        assert identity(source) == {**known, **fields}


def test_sample_has_the_promised_shape() -> None:
    source = SampleDataset()
    data = source.load()
    for name in ("docs", "topics", "evidence"):
        frames.check(name, getattr(data, name))
    assert all(file.is_file() for file in source.files().values())
    assert len(data.docs) >= 150
    assert len(data.topics) >= 100
    assert set(data.topics["type"]) == {"bridge", "comparison"}
    assert data.docs["title"].is_unique
    assert data.docs["text"].is_unique
    lengths = [len(sentence_spans(text)) for text in data.docs["text"]]
    assert min(lengths) >= 4
    assert max(lengths) <= 6


def test_evidence_is_verbatim_and_from_two_documents_or_more() -> None:
    data = SampleDataset().load()
    text = dict(zip(data.docs["docno"], data.docs["text"], strict=True))
    for row in data.evidence.itertuples():
        assert row.text in text[row.docno], row.qid
    assert data.evidence.groupby("qid")["docno"].nunique().min() >= 2
    assert set(data.evidence["qid"]) == set(data.topics["qid"])
