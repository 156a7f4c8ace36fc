"""Which chunks are relevant: by hand, and beside a brute-force twin."""

from __future__ import annotations

import difflib

import numpy as np
import pandas as pd
import pytest

from ragauge.measures import chunk_qrels, located

SENTENCE = "Anna built the tower in the year of 1880."  # 41 characters


def chunks_of(**texts: str) -> pd.DataFrame:
    rows = [(name.replace("_", "%"), text, name.partition("_")[0]) for name, text in texts.items()]
    return pd.DataFrame(rows, columns=["docno", "text", "parent"]).assign(start=0, end=1)


def relevant(chunks: pd.DataFrame, *parts: tuple[str | None, str, int]) -> dict[str, int]:
    evidence = pd.DataFrame(parts, columns=["docno", "text", "relevance"]).assign(qid="q", part=0)
    found = chunk_qrels(evidence.assign(part=range(len(parts))), chunks)
    return dict(zip(found["docno"], found["relevance"], strict=True))


def test_a_chunk_that_holds_most_of_a_part_is_relevant() -> None:
    chunks = chunks_of(
        d_p0="It is old. Anna built the\ntower in the",  # 28 of 41
        d_p1="year of 1880. It stands.",  # 13
        e_p0=f"Told elsewhere: {SENTENCE}",
    )
    assert relevant(chunks, ("d", SENTENCE, 1)) == {"d%p0": 1}
    # Of a part that names no document, any chunk: 32 characters at least in one piece.
    assert relevant(chunks, (None, SENTENCE, 1)) == {"e%p0": 1}
    # Without grades every part has 1, and one without a text is in no chunk.
    ungraded = pd.DataFrame({"qid": "q", "part": [0, 1], "docno": ["d", "e"], "text": [SENTENCE, None]})
    assert chunk_qrels(ungraded, chunks).to_numpy().tolist() == [["q", "d%p0", 1]]


def test_a_part_cut_in_the_middle_is_in_both_chunks() -> None:
    half = chunks_of(d_p0="0123456789 abcdefgh ", d_p1="ijklmnopqr stuvwxyz")
    assert relevant(half, ("d", "0123456789 abcdefgh ijklmnopqr stuvwxyz", 1)) == {"d%p0": 1, "d%p1": 1}


def test_chunks_within_a_long_part_are_relevant_and_have_the_highest_grade() -> None:
    document = "One sentence of it. Another sentence. A third one that is long enough to be told."
    chunks = chunks_of(d_p0=document[:20], d_p1=document[20:38], d_p2=document[38:], e_p0=document)
    assert relevant(chunks, ("d", document, 1), ("d", "Another sentence.", 3)) == {
        "d%p0": 1,
        "d%p1": 3,
        "d%p2": 1,
    }


def test_short_pieces_in_common_are_chance() -> None:
    chunks = chunks_of(d_p0="Graz and Linz are towns.", d_p1="Nothing of it. Yes!", d_p2=" ")
    assert relevant(chunks, ("d", "Yes!", 1)) == {"d%p1": 1}
    assert relevant(chunks, ("d", "Vienna and Linz have", 1)) == {}  # ` and Linz ` is half of it
    assert relevant(chunks, (None, "Yes!", 1)) == {}


def test_chunks_are_looked_at_in_blocks_and_none_is_lost_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located, "_BLOCK", 80)
    texts = [f"{number} {'abcdefghi ' * 4}"[:40] for number in range(8)]
    texts[1] = "too short to hold a piece"
    chunks = chunks_of(**{f"d_p{number}": text for number, text in enumerate(texts)})
    assert relevant(chunks, (None, texts[3], 1)) == {f"d%p{number}": 1 for number in (0, 2, 3, 4, 5, 6, 7)}


def test_random_texts_beside_brute_force() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij"), size=rng.integers(1, 9))) for _ in range(300)]
    docs = [" ".join(rng.choice(words, size=80)) for _ in range(12)]
    rows = []
    for number, text in enumerate(docs):
        at = 0
        while at < len(text):
            end = min(len(text), at + int(rng.integers(10, 200)))
            rows.append((f"d{number}%p{at}", text[at:end], f"d{number}", at, end))
            at = end
    chunks = pd.DataFrame(rows, columns=["docno", "text", "parent", "start", "end"])
    parts = []
    for number in range(30):
        doc = int(rng.integers(len(docs)))
        at = int(rng.integers(len(docs[doc]) - 60))
        text = docs[doc][at : at + int(rng.integers(8, 250))].strip()
        parts.append((f"q{number}", 0, f"d{doc}" if number % 2 else None, text, 1 + number % 3))
    evidence = pd.DataFrame(parts, columns=["qid", "part", "docno", "text", "relevance"])
    expected = set()
    for qid, _, docno, text, grade in parts:
        for chunk in chunks.itertuples():
            if docno is not None and chunk.parent != docno:
                continue
            part, other = " ".join(text.split()), " ".join(str(chunk.text).split())
            shorter = min(len(part), len(other))
            match = difflib.SequenceMatcher(None, part, other, autojunk=False).find_longest_match().size
            least = min(shorter, 16) if docno else 32
            if match >= least and 2 * (match + 1) >= shorter:
                expected.add((qid, chunk.docno, grade))
    found = set(chunk_qrels(evidence, chunks).itertuples(index=False, name=None))
    assert found == expected
    assert len(found) > 20
