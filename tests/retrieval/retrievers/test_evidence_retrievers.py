"""`oracle` and `noise`: which chunks hold evidence, by hand, and what is mixed with them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.contract.protocols import Tools
from ragauge.retrieval.evidence import evidence_chunks
from ragauge.retrieval.retrievers import BM25, MLQ, Noise, Oracle

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
    with pytest.raises(ConfigError, match="needs the evidence"):
        Oracle().transformer(CHUNKS, tmp_path, tools)


N_DOCS = 400


def collection(n_topics: int = 40, parts: int = 4) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """One chunk a document; a topic's evidence is so many documents of its own."""
    texts = {f"d{i:03}": f"number {i} of the words" for i in range(N_DOCS)}
    docs = {docno: (text, [(0, len(text))]) for docno, text in texts.items()}
    chunks = chunks_of(docs)
    topics = pd.DataFrame({"qid": [f"q{t}" for t in range(n_topics)]}, dtype="str")
    topics["query"] = [f"number {parts * t}" for t in range(n_topics)]
    evidence = evidence_of(*((f"q{n // parts}", f"d{n:03}", texts[f"d{n:03}"]) for n in range(n_topics * parts)))
    return topics, evidence, chunks


def mixed(
    noise: Noise, tools: Tools, folder: Path, n_topics: int = 40
) -> tuple[dict[str, list[str]], dict[str, set[str]]]:
    """Of every topic the chunks in rank order, and those of its evidence."""
    topics, evidence, chunks = collection(n_topics)
    if noise.options and not any(folder.iterdir()):
        noise.build_index(chunks, folder, tools)
    run = noise.rank_with_evidence(topics, evidence, chunks, folder, tools)
    frames.check("run", run)
    found = run.groupby("qid", sort=False)["docno"].agg(list).to_dict()
    own = {qid: {f"{docno}%p0" for docno in docnos} for qid, docnos in evidence.groupby("qid")["docno"]}
    return found, own


RATES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def test_the_share_of_evidence_is_the_rate_s_and_nested(tools: Tools, tmp_path: Path) -> None:
    kept: list[dict[str, set[str]]] = []
    for rate in RATES:
        found, own = mixed(Noise(noise_rate=rate, n_passages=5), tools, tmp_path)
        assert all(len(docnos) == 5 == len(set(docnos)) for docnos in found.values())
        kept.append({qid: set(docnos) & own[qid] for qid, docnos in found.items()})
        # 4 parts of 5 passages: 5 * (1 - rate), whole here, but no more than 4.
        assert {len(of_topic) for of_topic in kept[-1].values()} == {min(round(5 * (1 - rate)), 4)}
    for more, less in pairwise(kept):
        assert all(less[qid] <= more[qid] for qid in more)


def test_a_share_between_two_numbers_is_kept_on_average(tools: Tools, tmp_path: Path) -> None:
    found, own = mixed(Noise(noise_rate=0.9), tools, tmp_path, n_topics=100)  # 0.4 of 4 chunks
    kept = [len(set(docnos) & own[qid]) for qid, docnos in found.items()]
    assert set(kept) == {0, 1}
    assert np.mean(kept) == pytest.approx(0.4, abs=4 * (0.4 * 0.6 / 100) ** 0.5)
    assert {len(docnos) for docnos in found.values()} == {4}


@pytest.mark.parametrize("order", ["first", "last", "middle", "shuffled"])
def test_where_the_evidence_stands(order: Any, tools: Tools, tmp_path: Path) -> None:
    found, own = mixed(Noise(noise_rate=0.6, n_passages=10, order=order), tools, tmp_path)
    places = {tuple(i for i, d in enumerate(docnos) if d in own[qid]) for qid, docnos in found.items()}
    expected = {"first": {(0, 1, 2, 3)}, "last": {(6, 7, 8, 9)}, "middle": {(3, 4, 5, 6)}}
    if order == "shuffled":
        assert len(places) > 20
    else:
        assert places == expected[order]


def test_the_seed_alone_decides_and_other_topics_do_not(tools: Tools, tmp_path: Path) -> None:
    found, _ = mixed(Noise(n_passages=6), tools, tmp_path)
    again, _ = mixed(Noise(n_passages=6), tools, tmp_path, n_topics=7)
    assert again == {qid: found[qid] for qid in again}
    assert mixed(Noise(n_passages=6, seed=1), tools, tmp_path)[0] != found


def test_hard_distractors_are_the_other_retriever_s_best_without_the_evidence(tools: Tools, tmp_path: Path) -> None:
    options = {"bm25": BM25()}
    noise = Noise(noise_rate=1, n_passages=3, distractors="hard", order="first", options=options)
    found, own = mixed(noise, tools, tmp_path)
    topics, _, chunks = collection()
    deep = BM25(top_k=50)
    run = deep.transformer(chunks, tmp_path / "bm25", tools)(topics)
    for qid, hits in run.groupby("qid", sort=False)["docno"].agg(list).items():
        assert found[str(qid)] == [docno for docno in hits if docno not in own[str(qid)]][:3]


def test_no_distractor_holds_evidence_word_by_word(tools: Tools, tmp_path: Path) -> None:
    texts = {f"d{i}": ("The  same words stand in every document of this corpus.", [(0, 55)]) for i in range(9)}
    texts["other"] = ("Nothing of it.", [(0, 14)])
    topics = pd.DataFrame({"qid": ["q"], "query": ["words"]}, dtype="str")
    evidence = evidence_of(("q", "d0", "same words stand"))
    noise = Noise(noise_rate=1, n_passages=5)
    run = noise.rank_with_evidence(topics, evidence, chunks_of(texts), tmp_path, tools)
    assert run["docno"].tolist() == ["other%p0"]


def test_a_topic_without_evidence_gets_distractors_alone(tools: Tools, tmp_path: Path) -> None:
    topics, evidence, chunks = collection(2)
    noise = Noise(noise_rate=0, n_passages=3)
    run = noise.rank_with_evidence(topics, evidence[evidence["qid"] != "q1"], chunks, tmp_path, tools)
    assert run.groupby("qid").size().to_dict() == {"q0": 3, "q1": 3}


def test_what_is_not_asked_is_no_part_of_the_identity() -> None:
    options = {"bm25": BM25()}
    assert identity(Noise(options=options)) == identity(Noise())
    assert identity(Noise(distractors="hard", options=options)) != identity(Noise())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"noise_rate": 1.5}, "retriever.noise_rate=1.5: allowed are numbers from 0 to 1"),
        ({"n_passages": 0}, "retriever.n_passages=0: allowed are integers from 1, and null (as many"),
        ({"distractors": "soft"}, "retriever.distractors='soft': allowed are random, hard"),
        ({"order": "rank"}, "retriever.order='rank': allowed are shuffled, first, last, middle"),
        ({"seed": -1}, "retriever.seed=-1"),
        (
            {"distractors": "hard", "from_retriever": "x"},
            "retriever.from_retriever: 'x' is no retriever here",
        ),
        ({"distractors": "hard", "options": {"bm25": MLQ()}}, "options.bm25: mlq writes queries of its own"),
    ],
    ids=str,
)
def test_a_bad_value_is_told_in_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as told:
        Noise(**{"options": {"bm25": BM25()}, **given})
    assert says in str(told.value)
    assert "\n" not in str(told.value)
