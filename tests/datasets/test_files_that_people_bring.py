"""Files as people have them: packed, with printed lists in cells, with columns of other tools, and damaged ones."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragauge.contract.errors import DataError
from ragauge.contract.frames import as_frame
from ragauge.contract.topics import references
from ragauge.datasets import CsvDataset, JsonlDataset, SamplesDataset
from ragauge.datasets.labels import read_texts
from ragauge.datasets.lists import listed_texts
from ragauge.datasets.recordings import read_rows

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True), ".GZ": gzip.compress,
}  # fmt: skip
DOCS = '{"docno": "d1", "title": "", "text": "Paris is the capital."}\n'

DEEP = b"[" * 5000 + b"]" * 5000


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ('["Paris", "City of Paris"]', ["Paris", "City of Paris"]),
        ("['Paris', \"St. John's\"]", ["Paris", "St. John's"]),
        ("['Paris'\n 'City of Paris']", ["Paris", "City of Paris"]),  # numpy
        ('[["Paris"], ["Lutetia", "Paris"]]', ["Paris", "Lutetia", "Paris"]),
        ("[['Paris', 'Lutetia']]", ["Paris", "Lutetia"]),
        (' ["1912", 1912, 3.5, null]\n', ["1912", "1912", "3.5"]),
        ("['a', None, nan]", ["a"]),
        (f'["a", 1{"0" * 400}]', ["a", f"1{'0' * 400}"]),  # more than a float holds
        ("('Paris', 'City')", ["Paris", "City"]),
        ("{'Paris', 'City'}", ["Paris", "City"]),
        ("('Paris',)", ["Paris"]),
        ("{'Paris'}", ["Paris"]),
        ("('Paris')", None),
        ("(1, 2)", None),
        ("()", None),
        ('{"a": 1}', None),
        ("('Paris', ('a', 'b'))", None),
        ("(Paris, Texas)", None),
        ("[]", []),
        ("[0, 1]", None),
        ("[1]", None),
        ("[sic] Paris", None),
        ("[Paris]", None),
        ('["Paris"] or ["London"]', None),
        ('["Paris", {"a": 1}]', None),
        ("['Paris', ['a', ['b']]]", None),
        ("['Paris'", None),
        ("[", None),
        ('"Paris"', None),
        ("[" * 100_000 + "]" * 100_000, None),
    ],
)
def test_a_printed_list_of_texts_is_one_where_all_of_it_reads_as_one(text: str, texts: list[str] | None) -> None:
    assert listed_texts(text) == texts


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["Paris", "City of Paris"]', ("Paris", "City of Paris")),
        ("[sic] Paris", ("[sic] Paris",)),
        ("[0, 1]", ("[0, 1]",)),
    ],
)
def test_a_printed_list_in_a_cell_is_several_references_in_every_reader(
    tmp_path: Path, cell: str, expected: tuple[str, ...]
) -> None:
    quoted = cell.replace('"', '""')
    (tmp_path / "docs.csv").write_text("id,text\nd1,Paris is the capital.\n")
    (tmp_path / "docs.jsonl").write_text(DOCS)
    for column in ("answer", "reference", "answers", "golden_answers"):
        (tmp_path / "topics.csv").write_text(f'question,{column},evidence\nCapital?,"{quoted}","[""a"", ""b""]"\n')
        found = JsonlDataset(docs=tmp_path / "docs.jsonl", topics=tmp_path / "topics.csv").load()
        assert references(found.topics) == {"1": expected}, column
        assert found.evidence["text"].tolist() == ["a", "b"]
        if column != "answer":  # that of a system, in samples
            assert references(SamplesDataset(path=tmp_path / "topics.csv").load().topics) == {"1": expected}
    found = CsvDataset(docs=tmp_path / "docs.csv", topics=tmp_path / "topics.csv", answer_column="golden_answers",
                       evidence_column=None).load()  # fmt: skip
    assert references(found.topics) == {"1": expected}
    (tmp_path / "topics.jsonl").write_text(json.dumps({"question": "Capital?", "reference": cell}))
    found = JsonlDataset(docs=tmp_path / "docs.jsonl", topics=tmp_path / "topics.jsonl").load()
    assert references(found.topics) == {"1": expected}


@pytest.mark.parametrize("suffix", PACK)
def test_every_format_is_read_packed(tmp_path: Path, suffix: str) -> None:
    def written(name: str, text: str) -> Path:
        (tmp_path / f"{name}{suffix}").write_bytes(PACK[suffix](text.encode()))
        return tmp_path / f"{name}{suffix}"

    docs, corpus = written("docs.csv", "id,text\nd1,Paris.\n"), written("docs.jsonl", DOCS)
    row = {"question": "Capital?", "answer": "Paris", "contexts": ["Paris."], "reference": "Paris"}
    topics = written("topics.csv", "question,answer,text_ids\nCapital?,Paris,[d1]\n")
    assert CsvDataset(docs=docs, topics=topics).load().evidence["text"].tolist() == ["Paris."]
    of_topics = "question\tanswer\nCapital?\tParis\n"
    for file in (written("topics.tsv", of_topics), written("q.csv", of_topics.replace("\t", ","))):
        assert references(JsonlDataset(docs=corpus, topics=file).load().topics) == {"1": ("Paris",)}
    cells = "question,answer,contexts,reference\nCapital?,Paris,\"['Paris.']\",Paris\n"
    for file in (
        written("s.jsonl", json.dumps(row)), written("s.json", json.dumps([row])), written("s.csv", cells),
        written("s.tsv", cells.replace(",", "\t")),
    ):  # fmt: skip
        (found,) = read_rows(file, None, "system")
        assert (found.text("answer"), found.texts("contexts"), found.references()) == ("Paris", ["Paris."], ("Paris",))
    labels = read_texts(written("labels.csv", "qid;label\nq1;5\nq2\n"))
    assert labels.to_dict("list") == {"qid": ["q1", "q2"], "label": ["5", ""]}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.jsonl", gzip.compress(b"{}", mtime=0), "is packed by gzip: name it s.jsonl.gz"),
        ("s.csv", b"PK\x03\x04rest", "is a zip archive or an Excel sheet"),
        ("s.jsonl.gz", b"{}", "s.jsonl.gz: cannot be unpacked: Not a gzipped file"),
        ("s.csv.xz", b"question\n", "s.csv.xz: cannot be unpacked"),
        ("s.csv.zst", b"question\n", "s.csv.zst: cannot be unpacked"),
        ("s.jsonl.gz", gzip.compress(b'{"question": "a"}' * 1000, mtime=0)[:-20], "s.jsonl.gz: cannot be unpacked"),
        ("s.csv", "question,answer\na,b\n".encode("utf-16"), "header holds NUL bytes, as UTF-16 does; save"),
        ("s.csv", "question,answer\na,b\n".encode("utf-16-le"), "its header holds NUL bytes, as UTF-16 does"),
        ("s.jsonl", '{"question": "a"}'.encode("utf-16"), "line 1: not UTF-8: it holds the byte 0xff"),
        ("s.csv", b"question,answer\na,b\0c\n", "row 1: column 'answer' holds a NUL byte"),
        ("s.csv", b"question;answer\na;b\n", "its columns are separated by ';', and ',' is expected"),
        ("s.csv", b"question,answer,answer\na,b,c\n", "column 'answer' stands twice"),
        ("s.tsv", b"question\tanswer\na\n", "row 1: 1 cells where the header names 2 columns"),
        ("s.jsonl", b'{"question": "a", "score": Infinity}', "line 1: 'score' holds an infinite number"),
        ("s.jsonl", b'{"question": "a", "score": -1e999}', "line 1: 'score' holds an infinite number"),
        ("s.json", b'[{"question": "a", "m": {"x": [1e999]}}]', "row 1: 'm' holds an infinite number"),
        ("s.jsonl", b'{"question": "a", "x": ' + DEEP + b"}", "line 1: its values are nested too deep"),
        ("s.json", b'[{"question": "a"}, {"x": ' + DEEP + b"}]", "row 2: its values are nested too"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_named_in_one_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        SamplesDataset(path=tmp_path / name).load()
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_infinite_numbers_of_parquet_are_bad_rows_and_what_is_no_number_is_not_known(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    file = tmp_path / "s.parquet"
    pq.write_table(pa.table({"question": ["a", "b"], "score": [1.0, float("inf")]}), file)
    with pytest.raises(DataError, match="row 2: 'score' holds an infinite number"):
        SamplesDataset(path=file).load()
    pq.write_table(pa.table({"question": ["a", "b"], "score": [1.0, float("nan")]}), file)
    assert SamplesDataset(path=file).load().topics["score"].isna().tolist() == [False, True]


def test_a_table_as_frames_and_spreadsheets_save_it(tmp_path: Path) -> None:
    text = ",question ,answer,\r\n0,Capital?,Paris,\n1,Where?,Bern,\r\n"  # an index, mixed line ends, a last comma
    (tmp_path / "s.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    rows = read_rows(tmp_path / "s.csv", None, "system")
    assert [(row.text("question"), row.text("answer"), row.extra) for row in rows] == [
        ("Capital?", "Paris", {}), ("Where?", "Bern", {}),
    ]  # fmt: skip


def test_half_a_character_is_replaced_wherever_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text(r'{"docno": "d1", "title": "", "text": "Paris \ud83d"}')
    (tmp_path / "q.json").write_text(r'[{"query": "Where \udc00?", "type\ud800": "\ud83d\ude00"}]')
    found = JsonlDataset(docs=tmp_path / "docs.jsonl", topics=tmp_path / "q.json").load()
    assert as_frame(found.docs)["text"].tolist() == ["Paris \ufffd"]
    assert found.topics[["query", "type\ufffd"]].to_numpy().tolist() == [["Where \ufffd?", "\U0001f600"]]


@pytest.mark.parametrize("names", [("query", "answer"), ("question", "reference"), ("user_input", "ground_truth"),
                                   ("input", "expected_output"), ("question", "golden_answers")])  # fmt: skip
def test_questions_are_read_by_the_names_that_other_tools_give_them(tmp_path: Path, names: tuple[str, str]) -> None:
    (tmp_path / "docs.jsonl").write_text(DOCS)
    reference: Any = ["Paris", "Lutetia"] if names[1] == "golden_answers" else "Paris"
    row = {"id": 7, names[0]: "Capital?", names[1]: reference, "reference_contexts": ["Paris is the capital."]}
    (tmp_path / "q.jsonl").write_text(json.dumps(row))
    found = JsonlDataset(docs=tmp_path / "docs.jsonl", topics=tmp_path / "q.jsonl").load()
    assert references(found.topics) == {"7": ("Paris", "Lutetia") if isinstance(reference, list) else ("Paris",)}
    assert found.topics["query"].tolist() == ["Capital?"]
    assert found.evidence["text"].tolist() == ["Paris is the capital."]


def test_two_reference_answers_under_two_names_are_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text(DOCS)
    (tmp_path / "q.jsonl").write_text('{"question": "Capital?", "answer": "Bonn", "reference": "Paris"}')
    with pytest.raises(DataError, match=r"line 1: 'answer' and 'reference' differ.*dataset=samples"):
        JsonlDataset(docs=tmp_path / "docs.jsonl", topics=tmp_path / "q.jsonl").load()


def test_columns_whose_names_are_nearly_known_ones_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "docs.jsonl").write_text(DOCS)
    names = "Question,question,Reference,ground truth,type,question_id,answer_2,querry,refrences,contextual"
    (tmp_path / "q.csv").write_text(f"{names}\na,b,c,d,e,f,g,h,i,j\n")
    JsonlDataset(docs=tmp_path / "docs.jsonl", topics=tmp_path / "q.csv").load()
    SamplesDataset(path=tmp_path / "q.csv").load()
    said, of_samples = caplog.messages
    assert of_samples == said
    assert said.endswith(
        "'Question' (for 'question'?), 'Reference' (for 'reference'?), 'ground truth' (for 'ground_truth'?), "
        "'querry' (for 'query'?), 'refrences' (for 'references'?)"
    )


def test_columns_that_may_hold_what_no_row_has_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = {"query": "Who?", "expected_answer": "Ann", "answer_type": "name", "support": "a", "gold_passages": "Ann."}
    (tmp_path / "docs.jsonl").write_text(json.dumps({"docno": "d", "text": "Ann."}) + "\n", encoding="utf-8")
    file = tmp_path / "topics.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    JsonlDataset(docs=tmp_path / "docs.jsonl", topics=file).load()
    reference, evidence = caplog.messages
    assert reference.startswith(
        f"{file}: no row has a reference answer; read as attributes: 'expected_answer', 'gold_pas"
    )
    assert evidence.startswith(
        f"{file}: no row has evidence; read as attributes: 'gold_passages' (known names: evidence, "
    )
    caplog.clear()
    file.write_text(json.dumps(row | {"reference": "Ann", "evidence": ["Ann."]}) + "\n", encoding="utf-8")
    JsonlDataset(docs=tmp_path / "docs.jsonl", topics=file).load()
    assert not caplog.messages
