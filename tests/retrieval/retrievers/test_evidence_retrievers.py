"""`oracle`: which chunks hold evidence, by hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.retrieval.retrievers import Oracle
from ragauge.retrieval.retrievers.evidence import evidence_chunks

# Document d1 in three chunks without gaps, d2 in two that overlap, d3 with the white space between left out.
TEXTS = {
    "d1": ("One two three. Four five six. Seven eight.", [(0, 15), (15, 30), (30, 42)]),
    "d2": ("Red green blue yellow.", [(0, 14), (4, 22)]),
    "d3": ("Alpha beta.\n\n  Gamma delta.", [(0, 11), (15, 27)]),
}


def chunks_of(texts: dict[str, tuple[str, list[tuple[int, int]]]]) -> pd.DataFrame:
    rows = [
        (f"{doc}%p{i}", text[a:b], doc, a, b) for doc, (text, spans) in texts.items() for i, (a, b) in enumerate(spans)
    ]
    return pd.DataFrame(rows, columns=["docno", "text", "parent", "start", "end"])


def evidence_of(*rows: tuple[str, str | None, str | None]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows), columns=["qid", "docno", "text"], dtype=object)
    return frame.assign(part=frame.groupby("qid").cumcount())


CHUNKS = chunks_of(TEXTS)


@pytest.mark.parametrize(
    ("docno", "text", "expected"),
    [
        ("d1", "Four five six.", ["d1%p1"]),
        ("d1", "Four\n five  six.", ["d1%p1"]),
        ("d1", "three. Four", ["d1%p0", "d1%p1"]),
        ("d1", "three. Four five six. Seven", ["d1%p0", "d1%p1", "d1%p2"]),
        ("d2", "Red green", ["d2%p0", "d2%p1"]),  # the second holds `green` alone, so it comes last
        ("d2", "green", ["d2%p0", "d2%p1"]),  # both hold it, the shorter one first
        ("d2", "blue yellow", ["d2%p1", "d2%p0"]),
        ("d3", "beta. Gamma", ["d3%p0", "d3%p1"]),  # over the gap
        ("d1", None, ["d1%p0", "d1%p1", "d1%p2"]),
        ("d1", "not in it", ["d1%p0", "d1%p1", "d1%p2"]),
        (None, "Gamma delta.", ["d3%p1"]),
        (None, "nowhere", []),
        ("d9", "of no document", []),
    ],
    ids=str,
)
def test_chunks_of_a_part_by_hand(docno: str | None, text: str | None, expected: list[str]) -> None:
    found = evidence_chunks(evidence_of(("q", docno, text)), CHUNKS)
    assert CHUNKS["docno"].iloc[found["chunk"]].tolist() == expected


def test_a_text_without_docno_is_found_wherever_it_stands() -> None:
    texts = {"a": ("It rains. Again.", [(0, 9), (10, 16)]), "b": ("Yes. It rains.", [(0, 4), (5, 14)])}
    chunks = chunks_of(texts)
    found = evidence_chunks(evidence_of(("q", None, "It rains.")), chunks)
    assert sorted(chunks["docno"].iloc[found["chunk"]]) == ["a%p0", "b%p1"]


def test_against_brute_force_over_random_documents() -> None:
    rng = np.random.default_rng(0)
    words = ["ab", "c", "dde", "f", "gh"]
    for _ in range(60):
        text = "".join(rng.choice(words) + rng.choice([" ", "\n", "  "]) for _ in range(25))
        cuts = sorted({0, len(text), *rng.integers(1, len(text), 4).tolist()})
        spans = list(pairwise(cuts))
        a, b = sorted(rng.integers(0, len(text), 2).tolist())
        part = text[a : b + 1].strip() or "ab"
        chunks = chunks_of({"d": (text, spans)})
        found = evidence_chunks(evidence_of(("q", "d", " ".join(part.split()))), chunks)
        # Every place of the part, letter by letter, and the chunks that share one of its letters.
        black = [i for i, char in enumerate(text) if not char.isspace()]
        letters, wanted = "".join(text[i] for i in black), "".join(part.split())
        at, expected = letters.find(wanted), set()
        while at >= 0:
            own = black[at : at + len(wanted)]
            expected |= {n for n, (s, e) in enumerate(spans) if any(s <= i < e for i in own)}
            # White space between two letters of a place belongs to it.
            expected |= {n for n, (s, e) in enumerate(spans) if s < own[-1] + 1 and e > own[0]}
            at = letters.find(wanted, at + len(wanted))
        assert set(found["chunk"]) == expected


def test_the_oracle_ranks_what_the_parts_need_first(tools: Tools, tmp_path: Path) -> None:
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["a", "b", "c"]}, dtype="str")
    evidence = evidence_of(
        ("q3", "d2", "blue yellow"), ("q3", "d1", "Seven"), ("q1", "d1", "Four"), ("q1", "d1", "One")
    )
    run = Oracle().rank_with_evidence(topics, evidence, CHUNKS, tmp_path, tools)
    frames.check("run", run)
    assert run[["qid", "docno", "rank"]].to_numpy().tolist() == [
        ["q1", "d1%p1", 0], ["q1", "d1%p0", 1], ["q3", "d2%p1", 0], ["q3", "d1%p2", 1], ["q3", "d2%p0", 2],
    ]  # fmt: skip
    assert len(Oracle(top_k=1).rank_with_evidence(topics, evidence, CHUNKS, tmp_path, tools)) == 2
    with pytest.raises(ConfigError, match="does not search by the question alone"):
        Oracle().transformer(CHUNKS, tmp_path, tools)
