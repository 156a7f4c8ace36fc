from __future__ import annotations

import bz2
import gzip
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import as_frame
from ragauge.measures import qrels_of
from ragauge.plugins.benchmarks.sgml import blocks
from ragauge.plugins.benchmarks.trec import Trec

DOCS = """<DOC>
<DOCNO> FT911-1 </DOCNO>
<HEADLINE>
FT  14 MAY 91 / Rivers &amp; lakes
</HEADLINE>
<TEXT>
The <F P=105>Aare</F> is a river.

It joins the Rhine.
</TEXT>
<TEXT>Correction: at Koblenz.</TEXT>
</DOC>
<doc><docno>FT911-2</docno><text>Bern &lt; Basel.</text></doc><DOC><DOCNO>FT911-3</DOCNO></DOC>
"""
TOPICS = """
<top>
<num> Number: 301
<title> Topic: which river joins
the Rhine

<desc> Description:
Which topic: a river?

<narr> Narrative:
Any <river> counts.
</top>

<top>
<num> 302 </num>
<title> cities &amp; towns </title>
<desc>Which?</desc>
</top>
"""
QRELS = "301 0 FT911-1 2\n301 0 FT911-2 0\n302 0 FT911-2 1\n302 0 FT911-3 -1\n"


def write(folder: Path, docs: str = DOCS, topics: str = TOPICS, qrels: str = QRELS, **fields: Any) -> Trec:
    encoding = fields.get("encoding", "utf-8")
    for name, text in (("docs", docs), ("topics", topics), ("qrels", qrels)):
        (folder / name).write_bytes(text.encode(encoding))
    return Trec(docs=folder / "docs", topics=folder / "topics", qrels=folder / "qrels", **fields)


def documents(source: Trec) -> list[list[str]]:
    return frames.check("docs", as_frame(source.load().docs)).to_numpy().tolist()


def queries(source: Trec) -> dict[str, str]:
    topics = source.load().topics
    return dict(zip(topics["qid"], topics["query"], strict=True))


def test_sgml_documents_and_topics(tmp_path: Path) -> None:
    source = write(tmp_path, title_in_text=False)
    first, second, third = documents(source)
    assert first[:2] == ["FT911-1", "FT 14 MAY 91 / Rivers & lakes"]
    assert first[2].split("\n") == [
        "The  Aare  is a river.", "", "It joins the Rhine.", "Correction: at Koblenz.",
    ]  # fmt: skip
    assert second == ["FT911-2", "", "Bern < Basel."]
    assert third == ["FT911-3", "", ""]
    assert queries(source) == {"301": "which river joins the Rhine", "302": "cities & towns"}
    data = source.load()
    assert qrels_of(data.evidence).to_numpy().tolist() == [["301", "FT911-1", 2], ["302", "FT911-2", 1]]
    assert data.skipped == ()
    assert documents(write(tmp_path))[0][2].startswith("FT 14 MAY 91 / Rivers & lakes The  Aare")


def test_characters_that_are_no_tags_and_elements_that_are_never_closed(tmp_path: Path) -> None:
    docs = f"<DOC><DOCNO>FT911-1</DOCNO><TEXT>if a < b and <I>c</I> > d</TEXT>{'<TEXT>' * 50_000}</DOC>"
    source = write(tmp_path, f"{docs}<DOC><DOCNO>FT911-2</DOCNO></DOC>")
    start = time.perf_counter()
    assert documents(source)[0][2] == "if a < b and  c  > d"
    assert time.perf_counter() - start < 30  # minutes where every <TEXT> is looked through to the end


def test_another_element_is_asked(tmp_path: Path) -> None:
    assert queries(write(tmp_path, query_field="desc"))["301"] == "Which topic: a river?"


def test_topics_as_xml_with_a_number_attribute(tmp_path: Path) -> None:
    xml = (
        '<topics><topic number="301"><query>river</query><question>Which?</question></topic>'
        "<topic number='302' type=\"faceted\">\n<query>city</query></topic></topics>"
    )
    assert queries(write(tmp_path, topics=xml, query_field="query")) == {"301": "river", "302": "city"}


def test_lines_in_place_of_sgml(tmp_path: Path) -> None:
    topics = "301\twhich river\r\n302\tcities\r\n"
    tsv = "FT911-1\tThe Aare.\r\n\r\nFT911-2\tBern.\r\n"
    assert queries(write(tmp_path, tsv, topics)) == {"301": "which river", "302": "cities"}
    assert documents(write(tmp_path, tsv, topics)) == [["FT911-1", "", "The Aare."], ["FT911-2", "", "Bern."]]
    rows = [
        {"docno": "FT911-1", "title": "Aare", "text": "A river."},
        {"id": "FT911-2", "contents": "Bern."},
    ]
    jsonl = "".join(json.dumps(row) + "\n" for row in rows)
    assert documents(write(tmp_path, jsonl, topics)) == [
        ["FT911-1", "Aare", "Aare A river."], ["FT911-2", "", "Bern."],
    ]  # fmt: skip


def test_folder_of_packed_files(tmp_path: Path) -> None:
    source = write(tmp_path)
    folder = tmp_path / "many"
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "two.gz").write_bytes(gzip.compress(b"<DOC><DOCNO>FT911-2</DOCNO></DOC>"))
    (folder / "one").write_text("<DOC><DOCNO>FT911-1</DOCNO><TEXT>x</TEXT></DOC>")
    (folder / ".DS_Store").write_text("not a document")
    source = Trec(docs=folder, topics=source.topics, qrels=source.qrels)
    assert [row[0] for row in documents(source)] == ["FT911-2", "FT911-1"]
    assert list(source.files()) == ["docs/b/two.gz", "docs/one", "topics", "qrels"]


def test_encoding_of_old_collections(tmp_path: Path) -> None:
    docs = "<DOC><DOCNO>FT911-1</DOCNO><TEXT>Zürich</TEXT></DOC><DOC><DOCNO>FT911-2</DOCNO></DOC>"
    assert documents(write(tmp_path, docs, encoding="latin-1"))[0][2] == "Zürich"
    with pytest.raises(DataError, match=r"docs, line 1: the text is not UTF-8: it holds the byte 0xfc; save"):
        Trec(docs=tmp_path / "docs", topics=tmp_path / "topics", qrels=tmp_path / "qrels").load()


@pytest.mark.parametrize("qrels", [QRELS.replace(" ", "\t"), QRELS.replace("\n", "\r\n"), f"\ufeff{QRELS}"])
def test_spellings_of_qrels(tmp_path: Path, qrels: str) -> None:
    assert queries(write(tmp_path, qrels=qrels)).keys() == {"301", "302"}


@pytest.mark.parametrize(
    ("doc", "what"),
    [
        ("<DOC><TEXT>x</TEXT></DOC>", "has 0 <DOCNO> elements"),
        ("<DOC><DOCNO>a</DOCNO><DOCNO>b</DOCNO></DOC>", "has 2 <DOCNO> elements"),
        ("<DOC><DOCNO>a</DOCNO><TEXT>never closed", "<DOC> is not closed"),
        ("<DOC><DOCNO>a b</DOCNO></DOC>", "holds white space"),
        ("<DOC><DOCNO>FT911-1</DOCNO></DOC>", "stands twice"),
        ("<DOC><DOCNO></DOCNO></DOC>", "is empty"),
    ],
)
def test_bad_document_is_named_or_dropped(tmp_path: Path, doc: str, what: str) -> None:
    docs = f"{DOCS}{doc}\n<DOC><DOCNO>last</DOCNO></DOC>"
    with pytest.raises(DataError, match=r"docs, line 14: ") as caught:
        write(tmp_path, docs).load()
    assert what in str(caught.value)
    source = write(tmp_path, docs, on_error="skip")
    assert [row[0] for row in documents(source)] == ["FT911-1", "FT911-2", "FT911-3", "last"]
    assert what in source.load().skipped[0]


@pytest.mark.parametrize(
    ("docs", "what"),
    [
        ("FT911-1\ta\tb\n", "3 cells where two"),
        ("FT911-1\n", "1 cells where two"),
        ('{"docno": "a"}\n', "key 'text' is missing"),
        ('{"text": "a"}\n', "key 'docno' is missing"),
        ('{"docno": 1, "text": "a"}\n', "'docno' is not a string: 1"),
        ('{"docno": \n', "not a line of JSON"),
    ],
)
def test_bad_line_of_documents_is_named(tmp_path: Path, docs: str, what: str) -> None:
    with pytest.raises(DataError, match=r"docs, line 1: ") as caught:
        write(tmp_path, docs).load()
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("topics", "what"),
    [
        ("<top><title>x</top>", "has no <num>"),
        ("<top><num>301</num><desc>x</desc></top>", r"topic '301' has no <title> .*it has <num>, <desc>"),
        ("<top><num>301<title> </top>", "has no <title>"),
        ("<top><num>301<title>river", "is not closed"),
        ("<top><num>3 01<title>x</top>\n", None),
        ("301 which river\n", "1 cells where two"),
        ("301\t \n", "the query is empty"),
        ("301\ta\n301\tb\n", "this qid stands twice"),
    ],
)
def test_bad_topic_is_named(tmp_path: Path, topics: str, what: str | None) -> None:
    if what is None:  # a qid that nothing is judged for
        with pytest.raises(DataError, match="no topic in it"):
            write(tmp_path, topics=topics).load()
        return
    with pytest.raises(DataError, match=rf"topics, line [12].*{what}"):
        write(tmp_path, topics=topics).load()


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("301 FT911-1 1", "3 columns where four"),
        ("301 0 FT911-1 1", "judged twice, with 2 and 1"),
        ("301 0 FT911-1 1.0", "'1.0' is no whole number"),
    ],
)
def test_bad_judgement_is_named_or_dropped(tmp_path: Path, row: str, what: str) -> None:
    with pytest.raises(DataError, match=r"qrels, line 5") as caught:
        write(tmp_path, qrels=f"{QRELS}{row}\n").load()
    assert what in str(caught.value)
    assert what in write(tmp_path, qrels=f"{QRELS}{row}\n", on_error="skip").load().skipped[0]


def test_what_is_not_there_names_the_key(tmp_path: Path) -> None:
    source = write(tmp_path)
    with pytest.raises(ConfigError, match=r"dataset\.docs is not set"):
        Trec(topics=source.topics, qrels=source.qrels).files()
    with pytest.raises(ConfigError, match=r"dataset\.qrels=.*there is no such file"):
        Trec(docs=source.docs, topics=source.topics, qrels=tmp_path / "x").files()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="the folder holds no file"):
        Trec(docs=tmp_path / "empty", topics=source.topics, qrels=source.qrels).files()


@pytest.mark.parametrize("fields", [{"encoding": "klingon"}, {"query_field": ""}, {"title_in_text": "no"}])
def test_values_out_of_range_name_the_key(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(fields))}="):
        Trec(**fields)


def test_text_in_the_document_itself_where_no_text_element_stands(tmp_path: Path) -> None:
    docs = """<DOC>
<DOCNO>FT911-1</DOCNO>
compact memories have flexible
capacities &amp; speeds
</DOC>
<DOC><DOCNO>FT911-2</DOCNO><DOCHDR>http://x 200 OK</DOCHDR><html><head><title>Rivers</title>
<style>p</style></head><p>The <b>Aare</b>.</p></html><DATE>1991</DATE></DOC>
<DOC><DOCNO>FT911-3</DOCNO><HL>Other</HL><HEADLINE>No text</HEADLINE><DATE>never closed, so it is text</DOC>"""
    first, second, third = documents(write(tmp_path, docs, title_in_text=False))
    assert first == ["FT911-1", "", "compact memories have flexible\ncapacities & speeds"]
    assert [second[1], second[2].split()] == ["Rivers", ["The", "Aare", "."]]
    assert third == ["FT911-3", "No text", "never closed, so it is text"]


def test_a_text_element_is_all_of_the_text_even_where_it_is_empty(tmp_path: Path) -> None:
    docs = "<DOC><DOCNO>FT911-1</DOCNO>outside<TEXT></TEXT></DOC><DOC><DOCNO>FT911-2</DOCNO>Bern.</DOC>"
    assert documents(write(tmp_path, docs)) == [["FT911-1", "", ""], ["FT911-2", "", "Bern."]]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_an_element_of_a_packed_file_is_no_longer_than_a_document_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr("ragauge.datasets.packing.LONGEST", 2_000_000)
    file = tmp_path / f"bomb{suffix}"
    file.write_bytes(pack(b"<doc>" + (b"word " * 100 + b"\n") * 8_000))
    tracemalloc.start()
    with pytest.raises(DataError, match=f"bomb{suffix}: the element <doc> unpacks to more than 2 MB"):
        list(blocks(file, "doc", "utf-8"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000_000


SEGMENTS = [
    {"docid": "d_1#1_6", "title": "T", "segment": "She built a tower.", "start_char": 11, "end_char": 29},
    {"docid": "d_1#0_5", "title": "T", "segment": "Anna came. She built", "start_char": 0, "end_char": 20},
    {"docid": "d_1#1_7", "title": "T", "segment": "tower", "start_char": 23, "end_char": 28},
    {"docid": "d_1#2_7", "title": "T", "segment": "The end.", "start_char": 40, "end_char": 48},
    {"docid": "d_2#0_8", "title": "", "segment": "The Mur rises."},
    {"docid": "d_2#1_9", "title": "", "segment": "It flows."},
]


def trec_rag(folder: Path, **fields: Any) -> Trec:
    docs = "".join(json.dumps(row) + "\n" for row in SEGMENTS)
    narratives = '{"id": 1, "title": "Who built the tower, and why?"}\n{"id": "2", "title": "The Mur"}\n'
    qrels = "1 0 d_1#0_5 1\n1 0 d_1#1_6 3\n1 0 d_2#0_8 0\n2 0 d_2#1_9 2\n"
    return write(folder, docs, narratives, qrels, **fields)


def test_segments_and_narratives_of_trec_rag_are_read_as_they_are(tmp_path: Path) -> None:
    loaded = trec_rag(tmp_path).load()
    assert as_frame(loaded.docs)["docno"].tolist() == [row["docid"] for row in SEGMENTS]
    assert as_frame(loaded.docs)["text"].iloc[0] == "T She built a tower."
    assert loaded.topics["query"].tolist() == ["Who built the tower, and why?", "The Mur"]
    assert loaded.evidence["docno"].tolist() == ["d_1#0_5", "d_1#1_6", "d_2#1_9"]


def test_segments_are_joined_to_documents(tmp_path: Path) -> None:
    loaded = trec_rag(tmp_path, join_segments=True, title_in_text=False).load()
    assert as_frame(loaded.docs).values.tolist() == [
        ["d_1", "T", "Anna came. She built a tower. The end."],
        ["d_2", "", "The Mur rises. It flows."],
    ]
    qrels = qrels_of(loaded.evidence)
    assert qrels.values.tolist() == [["1", "d_1", 3], ["2", "d_2", 2]]
    with (tmp_path / "docs").open("a") as docs:
        docs.write('{"docid": "d_3#0", "segment": 7}\n{"segment": "x"}\n')
    source = Trec(
        docs=tmp_path / "docs",
        topics=tmp_path / "topics",
        qrels=tmp_path / "qrels",
        join_segments=True,
        on_error="skip",
    )
    assert [told.partition(": ")[0][-6:] for told in source.load().skipped] == ["line 7", "line 8"]


def test_without_judgements_all_topics_are_read_and_documents_may_be_missing(tmp_path: Path) -> None:
    source = trec_rag(tmp_path)
    alone = Trec(topics=source.topics)
    assert list(alone.files()) == ["topics"]
    assert alone.load().topics["qid"].tolist() == ["1", "2"]
    assert alone.load().evidence.empty
    assert len(as_frame(Trec(docs=source.docs, topics=source.topics, limit=1).load().topics)) == 1
    with pytest.raises(ConfigError, match=r"dataset\.docs is not set"):
        Trec(topics=source.topics, qrels=source.qrels).load()
