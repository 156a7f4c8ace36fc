"""Which documents evidence stands in, held against a look into every document."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from located_evidence import no_evidence_is_lost
from ragauge.contract.frames import Batches
from ragauge.datasets import SampleDataset
from ragauge.measures import located
from ragauge.measures.located import locate

DOCS = [
    ("aare", "The Aare flows into\nthe Rhine. It is 288 km long."),
    ("rhine", "The Rhine flows into the sea. It is 1,233 km long. Ships go up to Basel."),
    ("inn", "Das Wasser flie\u00dft. \u201cIt is cold\u201d, he said. It is 518 km long."),
    ("none", ""),
]


def frame(rows: list[tuple[str | None, str | None]]) -> pd.DataFrame:
    """Evidence, a topic each: docno and text."""
    docnos, texts = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(len(rows))],
            "part": 0,
            "docno": pd.Series(docnos, dtype="str"),
            "text": pd.Series(texts, dtype="str"),
        }
    )


def docs(rows: list[tuple[str, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["docno", "text"], dtype="str")


def found(
    rows: list[tuple[str | None, str | None]], fold: tuple[str, ...] = ()
) -> tuple[list[str | None], list[tuple[str, str | None, str | None]]]:
    """The docnos of the evidence, and qid, near_docno and near of its lost parts."""
    evidence, lost = locate(frame(rows), docs(DOCS), fold)
    near = lost[["qid", "near_docno", "near"]].astype(object)
    listed = near.where(near.notna(), None).itertuples(index=False, name=None)
    return evidence["docno"].astype(object).where(evidence["docno"].notna(), None).tolist(), list(listed)


def test_a_part_without_a_document_gets_the_one_that_holds_it() -> None:
    rows = [
        (None, "The Aare  flows into the Rhine."),
        (None, "Ships go"),
        (None, "flows into the"),
        (None, "x"),
    ]
    assert found(rows) == (["aare", "rhine", None, None], [("q3", None, None)])


def test_a_lost_part_comes_with_what_is_nearest() -> None:
    rows = [
        ("rhine", "Ships go up to Bsael."),  # a typo
        ("inn", "Ships go up to Basel."),  # of another document
        ("aare", "zyx wvu"),
        (None, "The Aare flows into the Rhin. It is 288 km long."),
        ("gone", "It is 518 km long."),
        ("aare", None),  # a document alone
    ]
    assert found(rows) == (
        ["rhine", "inn", "aare", None, "gone", "aare"],
        [
            ("q0", "rhine", "Ships go up to Basel."),
            ("q1", "rhine", "Ships go up to Basel."),
            ("q2", None, None),
            ("q3", "aare", DOCS[0][1]),  # as many sentences as the part has
            ("q4", "inn", "It is 518 km long."),
        ],
    )


def test_spellings_count_as_the_measure_folds_them() -> None:
    rows: list[tuple[str | None, str | None]] = [(None, '"It is cold", he said.')]
    assert found(rows)[1] == [("q0", "inn", DOCS[2][1].split(". ", 1)[1].split(" It is 518")[0])]
    assert found(rows, ("quotes",)) == (["inn"], [])


def test_without_documents_nothing_is_lost() -> None:
    evidence = frame([(None, "a"), ("d", "b")])
    same, lost = locate(evidence, docs([]))
    assert same is evidence
    assert list(lost) == ["qid", "part", "docno", "text", "near_docno", "near"]
    assert lost.empty
    # Nor where none has a text: the retriever brings its own, and these are names.
    same, lost = locate(evidence, docs([("d", ""), ("e", " ")]))
    assert same is evidence
    assert lost.empty


letters = st.text("ab \u00e9\u4e2d\n", max_size=40)


@given(
    st.lists(letters, min_size=1, max_size=6).filter(lambda texts: any(map(str.strip, texts))),
    st.lists(st.tuples(st.none() | st.integers(0, 5), letters.filter(str.strip)), min_size=1, max_size=6),
    st.sampled_from([1, 30, 4_000_000]),
)
def test_it_is_what_a_look_into_every_document_finds(
    texts: list[str], parts: list[tuple[int | None, str]], block: int
) -> None:
    rows = [(None if at is None else f"d{at % len(texts)}", text) for at, text in parts]
    corpus = docs([(f"d{i}", text) for i, text in enumerate(texts)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(located, "_BLOCK", block)
        evidence, lost = locate(frame(rows), Batches(lambda: iter([corpus.iloc[:1], corpus.iloc[1:]])))
    wanted, missing = [], []
    for i, (docno, text) in enumerate(rows):
        holders = [f"d{j}" for j, t in enumerate(texts) if " ".join(text.split()) in " ".join(t.split())]
        wanted.append(holders[0] if docno is None and len(holders) == 1 else docno)
        if docno not in holders if docno else not holders:
            missing.append((f"q{i}", holders[0] if holders else None))
    assert [d if isinstance(d, str) else None for d in evidence["docno"]] == wanted
    assert lost["qid"].tolist() == [qid for qid, _ in missing]
    for (_, holder), row in zip(missing, lost.itertuples(), strict=True):
        if holder is not None:
            assert (row.near_docno, row.near) == (holder, row.text)


def test_no_evidence_of_the_shipped_sample_is_lost() -> None:
    no_evidence_is_lost(SampleDataset().load())
