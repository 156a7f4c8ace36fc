"""`robustness`: evidence, noise beside it, noise alone, changed facts; by hand and in made-up worlds."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.changed import changed_docno, changed_from
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.plugins.robustness.retriever import Robustness
from ragauge.retrieval.retrievers import BM25

FictionalWorld = pytest.importorskip("ragauge.plugins.fictional.source").FictionalWorld

TOOLS: Any = None
RATES = (0, 0.2, 0.4, 0.6, 0.8)
# Of d1 two chunks, of its copy the same but for the second; d2 and the rest have one each.
DOCS = {
    "d1": ["Anna built the tower.", "It is 40 metres high."],
    "q1~changed~d1": ["Anna built the tower.", "It is 70 metres high."],
    "d2": ["The bridge stands in Linz."],
    **{f"n{i}": [f"Filler number {i} says nothing."] for i in range(30)},
}
EVIDENCE = [
    ("q1", "d1", "Anna built the tower."),
    ("q1", "d1", "It is 40 metres high."),
    ("q1", "d2", "The bridge stands in Linz."),
    ("q2", "d2", "The bridge stands in Linz."),
]
TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["How high?", "Where?"]})


def chunks_of(docs: dict[str, list[str]]) -> pd.DataFrame:
    rows = []
    for docno, texts in docs.items():
        at = 0
        for number, text in enumerate(texts):
            rows.append((f"{docno}%p{number}", text, docno, at, at + len(text)))
            at += len(text) + 1
    return pd.DataFrame(rows, columns=["docno", "text", "parent", "start", "end"])


def evidence_of(rows: list[tuple[str, str | None, str | None]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["qid", "docno", "text"], dtype=object)
    return frame.assign(part=frame.groupby("qid").cumcount())


def found(condition: Any, evidence: Any = EVIDENCE, docs: Any = DOCS, **fields: Any) -> dict[str, set[str]]:
    retriever = Robustness(condition, **{"distractors": "random", **fields})
    run = retriever.rank_with_evidence(TOPICS, evidence_of(evidence), chunks_of(docs), Path(), TOOLS)
    frames.check("run", run)
    return {qid: set(run.loc[run["qid"] == qid, "docno"]) for qid in TOPICS["qid"]}


def test_without_noise_there_is_all_evidence_and_nothing_else() -> None:
    assert found(0) == {"q1": {"d1%p0", "d1%p1", "d2%p0"}, "q2": {"d2%p0"}}


def test_noise_is_added_and_the_evidence_stays() -> None:
    half, most = found(0.5), found(0.8)
    own = found(0)
    for qid, n in (("q1", 3), ("q2", 1)):
        assert own[qid] < half[qid] < most[qid]
        assert len(half[qid]) - n in (n, n + 1)  # 3 of 6, or a coin more
        assert len(most[qid]) - n in (4 * n, 4 * n + 1)


def test_what_stands_in_a_context_at_one_rate_stands_there_in_the_same_order_at_every_higher_one() -> None:
    orders = []
    for rate in RATES:
        retriever = Robustness(rate, distractors="random")
        run = retriever.rank_with_evidence(TOPICS, evidence_of(EVIDENCE), chunks_of(DOCS), Path(), TOOLS)
        orders.append(run.loc[run["qid"] == "q1", "docno"].tolist())
    for fewer, more in pairwise(orders):
        assert [docno for docno in more if docno in fewer] == fewer


def test_at_the_rate_1_there_are_distractors_alone_as_many_as_chunks_at_0_8() -> None:
    alone = found(1)
    assert len(alone["q1"]) in (15, 16)
    assert len(alone["q2"]) in (5, 6)
    assert all(docno.startswith("n") for docnos in alone.values() for docno in docnos)


def test_a_changed_fact_stands_in_place_of_the_true_one_or_beside_it() -> None:
    # The chunk that both copies share stays, and what other documents say; q2 has no changed copy.
    assert found("changed") == {"q1": {"d1%p0", "q1~changed~d1%p1", "d2%p0"}, "q2": {"d2%p0"}}
    assert found("contradicted") == {
        "q1": {"d1%p0", "d1%p1", "q1~changed~d1%p1", "d2%p0"}, "q2": {"d2%p0"},
    }  # fmt: skip


def test_no_changed_copy_is_a_distractor_of_any_topic() -> None:
    docs = {**DOCS, **{f"q9~changed~n{i}": [f"Filler number {i} lies."] for i in range(30)}}
    assert not any("~changed~" in docno for own in found(1, docs=docs).values() for docno in own)


def test_a_document_that_is_known_to_hold_the_answer_is_neither_needed_nor_a_distractor() -> None:
    # q2 knows n0 to n24 by their docnos alone: five are left, which are as many as it needs at the rate 1.
    known = [("q2", f"n{i}", None) for i in range(25)]
    docs = {**DOCS, "n30": ["One more."]}
    assert found(0, EVIDENCE + known)["q2"] == {"d2%p0"}
    left = {f"n{i}%p0" for i in range(25, 31)} | {"d1%p0", "d1%p1"}
    assert found(1, EVIDENCE + known, docs)["q2"] <= left
    # Where no text is known at all, the documents are the evidence.
    assert found(0, [("q1", "d1", "Anna built the tower."), ("q2", "n3", None)])["q2"] == {"n3%p0"}


def test_hard_distractors_are_those_that_the_other_retriever_ranks_highest(tmp_path: Path) -> None:
    # Ten copies rank above it: more than the seven hits at most that evidence and distractors are.
    copies = {f"q{i}~changed~d2": ["How high? How high?"] for i in range(10, 20)}
    docs = {**DOCS, "near": ["How high is the other tower?"], **copies}
    chunks = chunks_of(docs)
    retriever = Robustness(0.5, options={"bm25": BM25()})
    (tmp_path / "bm25").mkdir()
    BM25().build_index(chunks, tmp_path / "bm25", TOOLS)
    run = retriever.rank_with_evidence(TOPICS, evidence_of(EVIDENCE), chunks, tmp_path, TOOLS)
    of_q1 = set(run.loc[run["qid"] == "q1", "docno"])
    assert "near%p0" in of_q1
    assert not any("~changed~" in docno for docno in of_q1)


def test_a_topic_is_the_same_in_any_selection() -> None:
    for condition in (0.6, 1, "changed"):
        retriever = Robustness(condition, distractors="random")
        alone = retriever.rank_with_evidence(TOPICS.iloc[1:], evidence_of(EVIDENCE), chunks_of(DOCS), Path(), TOOLS)
        assert set(alone["docno"]) == found(condition)["q2"]


def test_too_few_distractors_no_evidence_and_no_changed_copies_are_a_line_each() -> None:
    few = {docno: DOCS[docno] for docno in ("d1", "d2", "n0", "n1")}
    with pytest.raises(DataError, match=r"condition=0.8: topic 'q1' needs 1[23] distractors, and only 2 of the 5"):
        found(0.8, docs=few)
    assert found(0, docs=few)["q1"], "without noise a document for each topic is enough"
    with pytest.raises(DataError, match="no topic of this dataset has evidence that a chunk holds"):
        found(0, evidence=[("q1", None, "nowhere")])
    with pytest.raises(DataError, match="condition=changed: no document of this dataset has a changed fact"):
        found("changed", docs=few)


@pytest.mark.parametrize("condition", [-0.1, 1.2, float("nan"), "other", True, None])
def test_other_conditions_are_refused(condition: Any) -> None:
    with pytest.raises(ConfigError, match=r"retriever\.condition"):
        Robustness(condition)


def test_what_is_not_asked_is_no_part_of_the_identity() -> None:
    options = {"bm25": BM25()}
    assert identity(Robustness(0, options=options)) == identity(Robustness(0.0, distractors="hard"))
    assert identity(Robustness("changed", options=options))["options"] == {}
    assert identity(Robustness(0.2, options=options))["options"] != {}
    with pytest.raises(ConfigError, match=r"retriever\.from_retriever"):
        Robustness(0.2)


def test_docnos_of_changed_copies() -> None:
    assert changed_from(changed_docno("q 1", "d~2")) == ("q 1", "d~2")
    assert changed_from("d1") is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_a_made_up_world_every_condition_holds_what_it_says(seed: int) -> None:
    world = FictionalWorld(
        style="hard",
        pronouns=0,
        max_hops=4,
        seed=seed,
        twins=True,
        types=("chain", "comparison", "aggregation"),
        questions=8,
    )
    data = world.load()
    twins = world.counterfactuals().set_index("qid")
    chunks = chunks_of({d: [text] for d, text in zip(data.docs["docno"], data.docs["text"], strict=True)})
    text_of = chunks.set_index("docno")["text"]
    needed = data.evidence.groupby("qid")["text"].agg(list)
    changed = set(data.topics.loc[data.topics["wrong_answers"].map(len) > 0, "qid"])
    assert len(changed) >= 24

    def contexts(condition: Any) -> pd.Series:
        retriever = Robustness(condition, distractors="random")
        run = retriever.rank_with_evidence(data.topics, data.evidence, chunks, Path(), TOOLS)
        return run.assign(text=run["docno"].map(text_of)).groupby("qid")["text"].agg(" ".join)

    whole, noisy, alone = contexts(0), contexts(0.8), contexts(1)
    false, both = contexts("changed"), contexts("contradicted")
    for qid, parts in needed.items():
        assert all(part in whole[qid] and part in noisy[qid] and part not in alone[qid] for part in parts)
        if qid in changed:
            true, other = twins.loc[qid, "sentence"], twins.loc[qid, "changed"]
            assert (true in false[qid], other in false[qid]) == (False, True)
            assert true in both[qid]
            assert other in both[qid]
