from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datasets
from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import as_frame
from ragauge.contract.topics import is_unanswerable, references
from ragauge.measures import qrels_of
from ragauge.plugins.benchmarks import hub
from ragauge.plugins.benchmarks.huggingface import HuggingFace

CONTEXTS = ["The Aare flows into the Rhine.", "The Rhine ends in the North Sea."]
ROWS: list[dict[str, Any]] = [
    {
        "question": "Where does the Aare flow?",
        "answer": "the Rhine",
        "contexts": CONTEXTS,
        "hops": 1,
        "kind": "x",
    },
    {
        "question": "Where does the Rhine end?",
        "answer": "the North Sea",
        "contexts": CONTEXTS[1:],
        "hops": 2,
        "kind": None,
    },
]


def written(file: Path, rows: Sequence[dict[str, Any]]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), file)
    elif file.suffix == ".json":
        file.write_text(json.dumps(rows))
    elif file.suffix == ".csv":
        with file.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def of(folder: Path, rows: Sequence[dict[str, Any]] = ROWS, **fields: Any) -> HuggingFace:
    return HuggingFace(path=written(folder / "rows.jsonl", rows), **fields)


@pytest.mark.parametrize("suffix", ["parquet", "json", "jsonl"])
def test_distinct_contexts_are_the_documents(tmp_path: Path, suffix: str) -> None:
    source = HuggingFace(
        path=written(tmp_path / f"rows.{suffix}", ROWS),
        contexts_column="contexts",
        evidence_column="contexts",
        attribute_columns=["hops", "kind"],
    )
    data = source.load()
    docs = frames.check("docs", as_frame(data.docs))
    assert docs[["docno", "text"]].to_numpy().tolist() == [
        ["context-1", CONTEXTS[0]],
        ["context-2", CONTEXTS[1]],
    ]
    frames.check("topics", data.topics)
    assert data.topics["qid"].tolist() == ["1", "2"]
    assert references(data.topics) == {"1": ("the Rhine",), "2": ("the North Sea",)}
    assert data.topics["hops"].tolist() == [1.0, 2.0]
    assert data.topics["kind"].isna().tolist() == [False, True]
    assert qrels_of(data.evidence)["docno"].tolist() == ["context-1", "context-2", "context-2"]
    assert data.evidence["text"].tolist() == [*CONTEXTS, CONTEXTS[1]]


def test_evidence_is_found_in_the_contexts_of_its_row(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "sentence": " flows into "}, {**ROWS[1], "sentence": "stands nowhere"}]
    evidence = of(tmp_path, rows, contexts_column="contexts", evidence_column="sentence").load().evidence
    assert evidence["docno"].fillna("-").tolist() == ["context-1", "-"]
    assert evidence["text"].tolist() == ["flows into", "stands nowhere"]


def test_documents_of_another_table(tmp_path: Path) -> None:
    docs = written(tmp_path / "docs.parquet", [
        {"id": 7, "name": "Aare", "text": CONTEXTS[0]}, {"id": 8, "name": None, "text": CONTEXTS[1]},
        {"id": 9, "name": "['Bern']", "text": " "}, {"id": 10, "name": None, "text": "['x', 'y']"},
    ])  # fmt: skip
    rows: list[Any] = [{**ROWS[0], "ids": "[7, 8]"}, {**ROWS[1], "ids": [8, 9]}]
    given = {"docs": docs, "title_column": "name", "relevant_column": "ids"}
    data = of(tmp_path, rows, **given).load()
    assert as_frame(data.docs).to_numpy().tolist() == [
        ["7", "Aare", CONTEXTS[0]], ["8", "", CONTEXTS[1]], ["9", "['Bern']", " "],
        ["10", "", "['x', 'y']"],
    ]  # fmt: skip
    assert data.evidence.fillna("-")[["docno", "text"]].to_numpy().tolist() == [
        ["7", CONTEXTS[0]], ["8", CONTEXTS[1]], ["8", CONTEXTS[1]], ["9", "-"],
    ]  # fmt: skip
    rows = [{**rows[0], "sentences": CONTEXTS}, {**rows[1], "ids": 8, "sentences": f"['{CONTEXTS[1]}']"}]
    data = of(tmp_path, rows, **given, evidence_column="sentences").load()
    assert data.evidence["docno"].tolist() == ["7", "8", "8"]
    with pytest.raises(DataError, match=r"line 2, qid '2': evidence names docno '11'"):
        of(tmp_path, [rows[0], {**rows[1], "ids": 11}], **given).load()
    with pytest.raises(DataError, match="1 texts in column 'sentences', and 2 documents"):
        of(tmp_path, [{**rows[0], "sentences": "x"}], **given, evidence_column="sentences").load()


def test_answers_and_flags_as_published_sets_spell_them(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "[1]", "question": "q", "answers": {"text": ["x", "y"], "answer_start": [1, 2]}, "no": False},
        {"id": "b", "question": "q", "answers": {"text": [], "answer_start": []}, "no": True},
        {"id": "c", "question": "q", "answers": 1912, "no": None},
    ]
    given = {"answer_column": "answers", "qid_column": "id", "unanswerable_column": "no"}
    data = of(tmp_path, rows, **given).load()
    assert references(data.topics) == {"[1]": ("x", "y"), "b": (), "c": ("1912",)}
    assert is_unanswerable(data.topics).tolist() == [False, True, False]
    assert as_frame(data.docs).empty


def test_cells_of_a_csv_file(tmp_path: Path) -> None:
    rows = [{"question": "['q']", "answer": "['a', 'b']", "context": "c", "no": "False"},
            {"question": "r", "answer": "", "context": "c", "no": "true"}]  # fmt: skip
    source = HuggingFace(path=written(tmp_path / "rows.csv", rows), contexts_column="context", unanswerable_column="no")
    data = source.load()
    assert references(data.topics) == {"1": ("a", "b"), "2": ()}
    assert data.topics["query"].tolist() == ["['q']", "r"]
    assert len(as_frame(data.docs)) == 1
    with (tmp_path / "rows.csv").open("a") as file:
        file.write("too,few\n")
    with pytest.raises(DataError, match=r"rows\.csv, row 3: 2 cells where the header names 4 columns"):
        source.load()


def test_folder_of_a_data_set_that_was_cloned(tmp_path: Path) -> None:
    for name, rows in (("full/train-0", ROWS), ("full/test-0", ROWS[:1]), ("full/test-1", ROWS[1:]),
                       ("corpus/all", [{"id": "d", "text": "t"}])):  # fmt: skip
        written(tmp_path / f"{name}.parquet", rows)
    (tmp_path / "full/test-notes.md").touch()
    (tmp_path / "full/test.parquet").mkdir()
    source = HuggingFace(path=tmp_path, subset="full", split="test", docs_subset="corpus")
    assert [file.name for file in source.files().values()] == [
        "test-0.parquet",
        "test-1.parquet",
        "all.parquet",
    ]
    data = source.load()
    assert len(data.topics) == 2
    assert as_frame(data.docs)["docno"].tolist() == ["d"]
    with pytest.raises(ConfigError, match=r"begins with 'dev'; there are test-0\.parquet, test-1\.parquet"):
        HuggingFace(path=tmp_path, subset="full", split="dev").files()


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"answer": "a"}, "column 'question' is missing; the row has 'answer'"),
        ({"question": None, "answer": "a"}, "column 'question' holds 0 texts, not one"),
        ({"question": "q", "answer": {"a": 1}}, "'answer': what should be a text or a list of texts"),
        ({"question": "q", "answer": ["a", None]}, "'answer': what should be a text or a list of texts"),
        ({"question": "q", "answer": " "}, "the reference answer is empty"),
        ({"question": " ", "answer": "a"}, "the query is empty"),
        ({"question": "q", "answer": "a", "kind": ["x"]}, "attribute 'kind' is neither a text nor a number"),
        ({"question": "q", "answer": "a", "no": "maybe"}, "'no' is neither true nor false: 'maybe'"),
        ({"question": "q", "answer": "a", "no": 1}, "'no' is neither true nor false"),
        (["q", "a"], "expected a JSON object, found ['q', 'a']"),
    ],
)
def test_bad_row_is_named_or_dropped(tmp_path: Path, row: Any, what: str) -> None:
    good = {"question": "q", "answer": "a", "kind": "x", "no": False}
    given: dict[str, Any] = {"attribute_columns": ["kind"], "unanswerable_column": "no"}
    rows = [good, {**good, **row} if isinstance(row, dict) and "question" in row else row, good]
    with pytest.raises(DataError, match=r"rows\.jsonl, line 2") as caught:
        of(tmp_path, rows, **given).load()
    assert what in str(caught.value)
    data = of(tmp_path, rows, **given, on_error="skip").load()
    assert data.topics["qid"].tolist() == ["1", "3"]
    assert [what in skipped for skipped in data.skipped] == [True]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"text": "t"}, "column 'id' is missing"),
        ({"id": "d", "text": {"a": 1}}, "'text': what should be a text"),
        ({"id": ["d", "e"], "text": "t"}, "'id' holds 2 ids, not one"),
        ({"id": "d 1", "text": "t"}, "holds white space"),
        ({"id": "first", "text": "t"}, "stands twice"),
    ],
)
def test_bad_document_is_named_or_dropped(tmp_path: Path, row: Any, what: str) -> None:
    docs = written(tmp_path / "docs.jsonl", [{"id": "first", "text": "t"}, row])
    with pytest.raises(DataError, match=r"docs\.jsonl, line 2") as caught:
        of(tmp_path, docs=docs).load()
    assert what in str(caught.value)
    data = of(tmp_path, docs=docs, on_error="skip").load()
    assert as_frame(data.docs)["docno"].tolist() == ["first"]


def test_what_cannot_be_read_names_the_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.path is not set"):
        HuggingFace().files()
    (tmp_path / "rows.xlsx").touch()
    with pytest.raises(ConfigError, match=r"rows\.xlsx: allowed are files of \.parquet"):
        HuggingFace(path=tmp_path / "rows.xlsx").files()
    with pytest.raises(ConfigError, match=r"dataset\.question_column="):
        HuggingFace(question_column=None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"dataset\.attribute_columns='kind'"):
        HuggingFace(attribute_columns="kind")


# --- by the library -------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library keeps what it reads in the test's folder, and asks no hub."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    hub.from_hub.cache_clear()


@pytest.mark.usefixtures("cache")
def test_rows_come_through_the_library(tmp_path: Path) -> None:
    """What the library makes of a repository of two splits: a folder stands for one on the hub."""
    folder = tmp_path / "set"
    written(folder / "train.jsonl", ROWS)
    written(folder / "test.jsonl", ROWS[1:])
    found = hub.from_hub("path", str(folder), None, "test", None)
    assert [row["question"] for row in found] == [ROWS[1]["question"]]
    assert all(Path(file["filename"]).is_file() for file in found.cache_files)
    with pytest.raises(ConfigError, match="set the split, one of train, test"):
        hub.from_hub("path", str(folder), None, None, None)


@pytest.mark.usefixtures("cache")
def test_source_reads_what_the_library_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.Dataset.from_pandas(pd.DataFrame(ROWS)).save_to_disk(str(tmp_path / "saved"))
    datasets.Dataset.from_list([{"id": "d1", "text": "t"}]).save_to_disk(str(tmp_path / "docs"))
    asked = []

    def load(path: str, subset: str | None, split: str | None, revision: str | None) -> Any:
        asked.append((path, subset, split, revision))
        return datasets.load_from_disk(str(tmp_path / ("docs" if "corpus" in (path, subset) else "saved")))

    monkeypatch.setattr(datasets, "load_dataset", load)
    source = HuggingFace(path="some/set", contexts_column="contexts", evidence_column="contexts")
    assert [file.suffix for file in source.files().values()] == [".arrow"]
    data = source.load()
    assert (len(data.topics), len(as_frame(data.docs))) == (2, 2)
    # Documents of the same set have its revision, those of another one have not.
    whole = {"path": "some/set", "subset": "a", "split": "test", "revision": "r1"}
    for more in ({"docs_subset": "corpus"}, {"docs": "corpus", "docs_split": "all"}):
        assert as_frame(HuggingFace(**whole, **more).load().docs)["docno"].tolist() == ["d1"]
    assert asked == [
        ("some/set", None, None, None), ("some/set", "a", "test", "r1"), ("some/set", "corpus", None, "r1"),
        ("corpus", None, "all", None),
    ]  # fmt: skip


@pytest.mark.usefixtures("cache")
def test_name_that_is_nowhere_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"dataset\.path=no/such-set: there is no such file or folder, and"):
        HuggingFace(path="no/such-set").files()


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("kind", ["json", "csv", "parquet", "text"])
def test_a_reader_of_the_library_is_no_name_and_takes_no_file_of_the_working_directory(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / f"train.{kind}", ROWS)
    with pytest.raises(ConfigError, match=rf"^dataset\.path={kind}: is a kind of file; give the path"):
        HuggingFace(path=kind).files()


@pytest.mark.usefixtures("cache")
def test_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"needs datasets, which is not installed: pip install 'ragauge\[hub\]'"):
        HuggingFace(path="some/set").files()


@pytest.mark.parametrize(
    ("doc", "topic", "told"),
    [
        ({"Nummer": ""}, {}, r"1: docno '' is empty or holds white space \(column 'Nummer'\)"),
        ({"Nummer": "1%p"}, {}, r"which marks the chunks of a document \(column 'Nummer'\)"),
        ({}, {"Nr": ""}, r"qid '' is empty or holds white space \(column 'Nr'\)"),
        ({}, {"Frage": " "}, r"1, qid '7': the query is empty \(column 'Frage'\)"),
        ({}, {"Belege": ["9"]}, r"docno '9', which is no document of the corpus \(column 'Belege'\)"),
    ],
)
def test_errors_name_the_columns_of_the_config(
    tmp_path: Path, doc: dict[str, Any], topic: dict[str, Any], told: str
) -> None:
    whole_doc = {"Nummer": "1", "Inhalt": "The Aare."}
    whole_topic = {"Nr": "7", "Frage": "Which?", "Antwort": "The Aare", "Belege": ["1"]}

    def source(docs: list[dict[str, Any]], topics: list[dict[str, Any]]) -> HuggingFace:
        return HuggingFace(
            path=written(tmp_path / "t.jsonl", topics), docs=written(tmp_path / "d.jsonl", docs),
            question_column="Frage", relevant_column="Belege", docno_column="Nummer", text_column="Inhalt",
            qid_column="Nr", answer_column="Antwort",
        )  # fmt: skip

    with pytest.raises(DataError, match=told):
        source([{**whole_doc, **doc}], [{**whole_topic, **topic}]).load()
    with pytest.raises(DataError, match=r"2, qid '7': this qid stands twice \(column 'Nr'\)"):
        source([whole_doc], [whole_topic, whole_topic]).load()
