"""One cause for each failed topic: every rule by hand, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.answer_measures import NO_REFERENCE
from ragauge.contract.errors import ConfigError
from ragauge.contract.outcomes import CAUSE
from ragauge.diagnose.causes import CAUSES, OF_RETRIEVAL, causes
from ragauge.diagnose.failures import (
    EVERY_CAUSE,
    NOT_KNOWN,
    cause_shares,
    causes_by_slice,
    failure_metrics,
    failure_origins,
    failures_by_rules,
    right_by_place,
    transitions,
)
from ragauge.diagnose.funnel import share_of
from ragauge.diagnose.places import PLACES
from ragauge.estimate.outcomes import asked

NAN = float("nan")
STEPS = ("corpus", "best_chunk", "candidates", "reranked", "expanded", "compressed", "context")
WHOLE = "1 1 1 1 1 1 1"
IN_CONTEXT, NOT_THERE = "its words stand in the context", "it has words that stand neither in context nor question"
ALL_THERE, WRONG = "all evidence stands in the context: ", "wrong, " + NOT_THERE

# What each part of the evidence is at each step, how the topic differs from one with a wrong answer whose words stand
# nowhere, the cause, and by what that was decided.
WORLD: list[tuple[str, dict[str, Any], str | None, str]] = [
    # the step that lost most of what was there decides
    ("0.3 0.3 0.3 0.3 0.3 0.3 0.3", {}, "not in the corpus", "evidence 1: 0.30 in the corpus"),
    ("1 0.3 0.3 0.3 0.3 0.3 0.3", {}, "cut by the chunker",
     "evidence 1: 1.00 in the corpus, 0.30 in the best chunk"),
    ("1 1 0.3 0.3 0.3 0.3 0.3", {}, "not retrieved",
     "evidence 1: 1.00 in the best chunk, 0.30 among all candidates"),
    ("1 1 1 0.3 0.3 0.3 0.3", {}, "lost by the reranker",
     "evidence 1: 1.00 among all candidates, 0.30 after reranking"),
    ("1 1 1 1 0.3 0.3 0.3", {}, "compressed away", "evidence 1: 1.00 after reranking, 0.30 after expansion"),
    ("1 1 1 1 1 0.3 0.3", {}, "compressed away", "evidence 1: 1.00 after expansion, 0.30 after compression"),
    ("1 1 1 1 1 1 0.3", {}, "beyond the budget", "evidence 1: 1.00 after compression, 0.30 within N tokens"),
    # the chunker cut it, neighbours completed it, the budget cut it off
    ("1 0.5 1 1 1 1 0.2", {}, "beyond the budget", "evidence 1: 1.00 after compression, 0.20 within N tokens"),
    # of three parts the one of which least is left decides; of two alike the first
    ("1 1 1 1 1 1 0.2 | 1 1 0.1 0.1 0.1 0.1 0.1 | 1 1 1 1 1 1 1", {}, "not retrieved",
     "evidence 2: 1.00 in the best chunk, 0.10 among all candidates"),
    ("1 1 1 1 1 1 0.2 | 1 1 0.2 0.2 0.2 0.2 0.2", {}, "beyond the budget",
     "evidence 1: 1.00 after compression, 0.20 within N tokens"),
    # cut a little, then missed; a tenth was not retrieved, and the part still stood; a half was never there
    ("1 0.7 0.1 0.1 0.1 0.1 0.1", {}, "not retrieved",
     "evidence 1: 0.70 in the best chunk, 0.10 among all candidates"),
    ("1 0.7 0.7 0.7 0.7 0.7 0.6", {}, "cut by the chunker",
     "evidence 1: 1.00 in the corpus, 0.70 in the best chunk"),
    ("1 1 0.9 0.85 0.85 0.85 0.85", {}, "lost by the reranker",
     "evidence 1: 0.90 among all candidates, 0.85 after reranking"),
    ("0.5 0.4 0.4 0.4 0.4 0.4 0.3", {}, "not in the corpus", "evidence 1: 0.50 in the corpus"),
    ("0.8 0.8 0.2 0.2 0.2 0.2 0.2", {}, "not retrieved",
     "evidence 1: 0.80 in the best chunk, 0.20 among all candidates"),
    ("1 1 1 1 1 1 0.89", {}, "beyond the budget", "evidence 1: 1.00 after compression, 0.89 within N tokens"),
    ("1 1 1 1 1 1 0.9", {}, "unsupported answer", WRONG),
    # what the order before reranking had within the budget
    ("1 1 1 1 1 1 0", {"unreranked": 0.9}, "lost by the reranker",
     "evidence 1: 1.00 after compression, 0.00 within N tokens, where the order before reranking had it"),
    ("1 1 1 1 1 1 0", {"unreranked": 0.8}, "beyond the budget",
     "evidence 1: 1.00 after compression, 0.00 within N tokens"),
    # all of it stands in the context
    (WHOLE, {"label": 5}, None, ""),
    (WHOLE, {"label": 5, "evidence_place": "middle"}, None, ""),
    (WHOLE, {"label": 1}, "generation error", ALL_THERE + "lack of information"),
    (WHOLE, {"label": 3}, "generation error", ALL_THERE + "partly right, incomplete"),
    (WHOLE, {"label": 2}, "unsupported answer", "partly right with wrong statements, " + NOT_THERE),
    (WHOLE, {"answer_from_context": True}, "generation error", ALL_THERE + "wrong, " + IN_CONTEXT),
    (WHOLE, {"answer_from_context": True, "faithfulness": 0.2}, "unsupported answer", "wrong, faithfulness 0.20"),
    (WHOLE, {"faithfulness": 0.5}, "generation error", ALL_THERE + "wrong, faithfulness 0.50"),
    (WHOLE, {"evidence_place": "middle"}, "lost in the middle", "all evidence stands in the middle third: wrong"),
    (WHOLE, {"label": 1, "evidence_place": "middle"}, "lost in the middle",
     "all evidence stands in the middle third: lack of information"),
    ("1 1 1 1 1 1 0", {"label": 5}, None, ""),
    # nobody knows that it failed; there is no answer; nobody was to judge it
    (WHOLE, {"label": None}, "judge missing", "no verdict"),
    ("1 1 0 0 0 0 0", {"label": None, "judge_status": "unreadable", "reason": "no JSON"}, "judge missing",
     "no verdict: unreadable: no JSON"),
    ("1 1 0 0 0 0 0", {"label": None, "answer": None, "answer_error": "HTTP 500"}, "generation error",
     "no answer: HTTP 500"),
    (WHOLE, {"label": 1, "unanswerable": True}, None, ""),
    (WHOLE, {"unanswerable": True, "label": 5}, "unsupported answer",
     "answered what the documents do not answer: right"),
    (WHOLE, {"label": None, "judge_status": NO_REFERENCE}, None, ""),
    (WHOLE, {"label": None, "judged": False}, None, ""),
    ("", {}, "no evidence known", "wrong"),
    ("", {"label": 5}, None, ""),
]  # fmt: skip


def world() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Outcomes and parts of the table above; topics are numbered, and the last part of one stands first."""
    usual = {"label": 4, "answer": "Linz", "evidence_place": "spread", "answer_from_context": False, "judged": True,
             "unanswerable": False, "faithfulness": NAN}  # fmt: skip
    topics, parts = [], []
    for i, (steps, differs, _, _) in enumerate(WORLD):
        topics.append({"qid": f"q{i}"} | usual | {k: v for k, v in differs.items() if k != "unreranked"})
        for part, values in enumerate(steps.split(" | ") if steps else []):
            row = dict(zip(STEPS, map(float, values.split()), strict=True))
            parts.append({"qid": f"q{i}", "part": part, "unreranked": differs.get("unreranked", NAN)} | row)
    return pd.DataFrame(topics).astype({"label": "Int8"}), pd.DataFrame(parts)


def test_every_failed_topic_has_one_cause_and_what_decided_it() -> None:
    expected = [(f"q{i}", cause, why) for i, (_, _, cause, why) in enumerate(WORLD) if cause is not None]
    found = causes(*world())
    assert list(found.itertuples(index=False, name=None)) == expected
    assert (list(found.columns), found.index.tolist()) == (["qid", "cause", "decided_by"], list(range(len(found))))


def test_without_a_judge_lost_evidence_alone_fails() -> None:
    topics, parts = world()
    gone = parts[parts["context"] < 0.9]["qid"].unique().tolist()
    topics["unanswerable"] = topics["qid"].eq(gone[0])
    of_retrieval = {f"q{i}": (cause, why) for i, (_, _, cause, why) in enumerate(WORLD) if cause in OF_RETRIEVAL}
    found = causes(topics, parts, judged=False).set_index("qid")
    assert found.index.tolist() == gone[1:]
    for qid, decided in of_retrieval.items():
        assert qid == gone[0] or tuple(found.loc[qid]) == decided


def test_without_documents_or_chunks_nothing_is_blamed_on_them() -> None:
    topics, parts = world()
    for lacking in (parts.drop(columns=["corpus", "best_chunk"]), parts.assign(corpus=NAN, best_chunk=NAN)):
        found = causes(topics, lacking).set_index("qid")
        assert tuple(found.loc["q0"]) == ("not retrieved", "evidence 1: 0.30 among all candidates")
        assert found.loc["q6", "cause"] == "beyond the budget"
    assert causes(topics.drop(columns="faithfulness"), parts)["cause"].eq("generation error").sum() == 5


def test_every_cause_says_what_to_try() -> None:
    assert len({c.slug for c in EVERY_CAUSE.values()}) == len(EVERY_CAUSE) == 15
    assert all(c.advice.endswith(".") for c in EVERY_CAUSE.values())
    assert set(OF_RETRIEVAL) < set(CAUSES)


# --- rules ------------------------------------------------------------------------------------------------


def test_the_first_rule_that_holds_is_the_cause() -> None:
    rows = pd.DataFrame(
        {
            "qid": list("abcdef"),
            "context_recall": [0.2, 0.3, 0.9, 0.9, 0.9, NAN],
            "context_precision": [0.1, 0.29, 0.9, 0.9, 0.9, NAN],
            "faithfulness": [0.1, 0.1, 0.49, 0.5, 0.9, NAN],
            "answer_correctness": [0.1, 0.1, 0.1, 0.49, 0.5, 0.1],
        }
    )
    found = failures_by_rules(rows).set_index("qid")["cause"].to_dict()
    assert found == {
        "a": "context recall below 0.3",
        "b": "context precision below 0.3",
        "c": "faithfulness below 0.5",
        "d": "answer correctness below 0.5",
        "f": "answer correctness below 0.5",
    }
    assert failures_by_rules(rows)["decided_by"].tolist() == [
        "context_recall 0.20", "context_precision 0.29", "faithfulness 0.49", "answer_correctness 0.49",
        "answer_correctness 0.10",
    ]  # fmt: skip


def test_rules_without_their_measures_are_one_line() -> None:
    with pytest.raises(ConfigError, match=r"context_precision, answer_correctness.*answers=\[.*failures=causes"):
        failures_by_rules(pd.DataFrame({"qid": ["q"], "context_recall": [1.0], "faithfulness": [1.0]}))


# --- shares -----------------------------------------------------------------------------------------------


def failed() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(8)],
            "label": pd.Series([5, 5, 4, 4, 1, 3, 5, None], dtype="Int8"),
            CAUSE: [
                None,
                None,
                "not retrieved",
                "not retrieved",
                "not retrieved",
                "unsupported answer",
                None,
                None,
            ],
            "evidence_place": ["middle", "end", None, None, None, "middle", "end", None],
            "judge_status": ["ok"] * 7 + [NO_REFERENCE],
            "slice:type": ["a", "a", "a", "b", "b", "b", "b", "b"],
        }
    )


def test_shares_are_over_all_topics_that_can_fail() -> None:
    table = cause_shares(failed(), names=["beyond the budget"]).set_index("cause")
    assert list(table.index) == ["not retrieved", "unsupported answer", "beyond the budget"]
    assert table["share"].tolist() == pytest.approx([3 / 7, 1 / 7, 0])
    assert table["of_failures"].tolist() == pytest.approx([3 / 4, 1 / 4, 0])
    assert table["n"].eq(7).all()
    assert (table["lo"] <= table["share"]).all()
    assert (table["hi"] > table["share"]).all()
    metrics = failure_metrics(table.reset_index())
    assert metrics["failure_not_retrieved_share"] == pytest.approx(3 / 7)
    assert metrics["failure_budget_share_hi"] > 0


def test_shares_of_a_sample_count_what_its_rows_stand_for() -> None:
    """Of ten topics in two strata two each were judged: 8 of one, 2 of the other."""
    rows = pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(10)],
            "stratum": [0] * 8 + [1] * 2,
            "judged": [True, True, *[False] * 6, True, True],
            CAUSE: ["not retrieved", None, *[None] * 6, None, None],
            "system": "s",
        }
    )
    table = cause_shares(rows)
    assert table["share"].tolist() == pytest.approx([0.4])  # half of the larger stratum
    assert table["n"].tolist() == [4]
    share = share_of(np.array([True, False, False, False]), asked(rows))
    assert (table["lo"].iloc[0], table["hi"].iloc[0]) == (share.lo, share.hi)
    placed = rows.assign(evidence_place="end", label=pd.Series([5, *[4] * 9], dtype="Int8"))
    table = right_by_place(placed, PLACES)
    assert table[["share", "lo", "hi"]].to_numpy().tolist() == [[share.value, share.lo, share.hi]]


def test_origins_are_shares_of_all_failures_with_their_first_cause() -> None:
    rows = pd.concat([failed(), failed().assign(**{CAUSE: "no evidence known"}).iloc[:2]])
    table = failure_origins(rows).set_index("origin")
    assert list(table.index) == ["retrieval", "the LLM", "the corpus", "the budget", "the judge", NOT_KNOWN]
    assert table["cause"].tolist() == ["not retrieved", "unsupported answer", "", "", "", "no evidence known"]
    assert table["failures"].tolist() == [3, 1, 0, 0, 0, 2]
    assert table["share"].tolist() == pytest.approx([3 / 6, 1 / 6, 0, 0, 0, 2 / 6])
    assert table["n"].eq(6).all()


def test_failures_of_one_topic_in_many_systems_are_one_draw() -> None:
    one = failed()
    many = pd.concat([one.assign(system=str(i)) for i in range(5)], ignore_index=True)
    of_one, of_many = failure_origins(one), failure_origins(many)
    assert of_many["failures"].tolist() == [15, 5, 0, 0, 0, 0]
    for end in ("share", "lo", "hi"):
        assert of_many[end].tolist() == pytest.approx(of_one[end].tolist())


def test_every_cause_has_an_origin() -> None:
    rows = pd.DataFrame({"qid": list(EVERY_CAUSE), CAUSE: list(EVERY_CAUSE)})
    assert failure_origins(rows)["failures"].sum() == len(EVERY_CAUSE)


def test_causes_by_slice() -> None:
    table = causes_by_slice(failed()).set_index(["slice", "cause"])
    assert table["share"]["a", "not retrieved"] == pytest.approx(1 / 3)
    assert table["share"]["b", "not retrieved"] == pytest.approx(2 / 4)
    assert causes_by_slice(failed()).index.tolist() == [0, 1, 2]
    assert causes_by_slice(failed().drop(columns="slice:type")).empty


def test_right_answers_by_place() -> None:
    table = right_by_place(failed(), PLACES).set_index("place")
    assert table["share"].to_dict() == {"middle": 0.5, "end": 1.0}
    assert table["n"].to_dict() == {"middle": 2, "end": 2}


def test_what_changed_its_cause() -> None:
    after = failed().assign(**{CAUSE: [None, "unsupported answer", None, None, "not retrieved", None, None, None]})
    table = transitions(failed(), after)
    found = {(row["cause"], row["becomes"]): row["topics"] for row in table.to_dict("records")}
    assert found == {
        ("not retrieved", "not failed"): 2,
        ("not failed", "not failed"): 2,
        ("not failed", "unsupported answer"): 1,
        ("not retrieved", "not retrieved"): 1,
        ("unsupported answer", "not failed"): 1,
    }
