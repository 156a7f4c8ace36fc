"""One cause for each failed topic: every rule by hand, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.answer_measures import NO_REFERENCE
from ragauge.contract.errors import ConfigError
from ragauge.diagnose.causes import CAUSES, OF_RETRIEVAL, causes
from ragauge.diagnose.failures import (
    CAUSE,
    EVERY_CAUSE,
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

STEPS = ("corpus", "best_chunk", "candidates", "reranked", "expanded", "compressed", "context")
NAN = float("nan")


def parts(*values: tuple[float, ...], steps: tuple[str, ...] = STEPS, **more: Any) -> pd.DataFrame:
    """A part of qid q for each tuple of values, step by step."""
    frame = pd.DataFrame(list(values), columns=list(steps)).assign(qid="q", **more)
    return frame.assign(part=range(len(frame)))


def topic(**columns: Any) -> pd.DataFrame:
    usual = {
        "qid": "q",
        "label": 4,
        "answer": "Linz",
        "evidence_place": "spread",
        "answer_from_context": False,
    }
    return pd.DataFrame([usual | columns]).astype({"label": "Int8"})


def cause(outcome: pd.DataFrame, of_parts: pd.DataFrame, judged: bool = True) -> str | None:
    found = causes(outcome, of_parts, judged)
    return found["cause"].iloc[0] if len(found) else None


@pytest.mark.parametrize(
    ("lost_at", "name"),
    [
        (0, "not in the corpus"),
        (1, "cut by the chunker"),
        (2, "not retrieved"),
        (3, "lost by the reranker"),
        (4, "compressed away"),
        (5, "compressed away"),
        (6, "beyond the budget"),
    ],
)
def test_the_step_that_lost_the_evidence_is_the_cause(lost_at: int, name: str) -> None:
    values = tuple(1.0 if i < lost_at else 0.3 for i in range(len(STEPS)))
    assert cause(topic(), parts(values)) == name
    assert cause(topic(), parts(values), judged=False) == name
    assert name in OF_RETRIEVAL


def test_a_part_that_a_step_brought_back_was_lost_later() -> None:
    """The chunker cut it, neighbours completed it, and the budget cut it off."""
    assert cause(topic(), parts((1, 0.5, 1, 1, 1, 1, 0.2))) == "beyond the budget"


def test_of_several_parts_the_one_of_which_least_is_left_decides() -> None:
    lost = parts((1, 1, 1, 1, 1, 1, 0.2), (1, 1, 0.1, 0.1, 0.1, 0.1, 0.1), (1, 1, 1, 1, 1, 1, 1))
    found = causes(topic(), lost).iloc[0]
    assert found["cause"] == "not retrieved"
    assert found["decided_by"] == "evidence 2: 1.00 in the best chunk, 0.10 among all candidates"


def test_a_part_that_was_cut_a_little_and_then_missed_was_not_retrieved() -> None:
    """Seven tenths of it stand in one chunk, and that one was not found."""
    assert cause(topic(), parts((1, 0.7, 0.1, 0.1, 0.1, 0.1, 0.1))) == "not retrieved"
    assert cause(topic(), parts((1, 0.7, 0.7, 0.7, 0.7, 0.7, 0.6))) == "cut by the chunker"
    assert cause(topic(), parts((0.8, 0.8, 0.2, 0.2, 0.2, 0.2, 0.2))) == "not retrieved"
    assert cause(topic(), parts((0.5, 0.4, 0.4, 0.4, 0.4, 0.4, 0.3))) == "not in the corpus"


def test_a_loss_after_which_the_part_still_stood_is_not_the_cause() -> None:
    """A tenth was not retrieved, and the reranker lost a twentieth: with that the part stood no more."""
    assert cause(topic(), parts((1, 1, 0.9, 0.85, 0.85, 0.85, 0.85))) == "lost by the reranker"


def test_a_row_has_topic_cause_and_reason_alone() -> None:
    three = pd.concat([topic(qid="a", label=5), topic(qid="b"), topic(qid="q")], ignore_index=True)
    found = causes(three, WHOLE)
    assert list(found.columns) == ["qid", "cause", "decided_by"]
    assert found.index.tolist() == [0, 1]
    assert found["qid"].tolist() == ["b", "q"]


def test_nine_tenths_of_a_part_are_enough() -> None:
    assert cause(topic(label=3), parts((1, 1, 1, 1, 1, 1, 0.9))) == "generation error"
    assert cause(topic(label=3), parts((1, 1, 1, 1, 1, 1, 0.89))) == "beyond the budget"


def test_what_the_order_before_reranking_had_within_the_budget_is_lost_by_the_reranker() -> None:
    beyond = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)
    assert cause(topic(), parts(beyond, unreranked=1.0)) == "lost by the reranker"
    assert cause(topic(), parts(beyond, unreranked=0.2)) == "beyond the budget"


def test_without_documents_or_chunks_nothing_is_blamed_on_them() -> None:
    short = ("candidates", "context")
    assert cause(topic(), parts((0.1, 0.1), steps=short)) == "not retrieved"
    assert cause(topic(), parts((0.1, 0.1), steps=short, corpus=NAN, best_chunk=NAN)) == "not retrieved"
    assert cause(topic(), parts((1, 0.1), steps=short)) == "beyond the budget"


WHOLE = parts((1, 1, 1, 1, 1, 1, 1))


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"label": 5}, None),
        ({"label": 1}, "generation error"),
        ({"label": 3}, "generation error"),
        ({"label": 4}, "unsupported answer"),
        ({"label": 2}, "unsupported answer"),
        ({"label": 4, "answer_from_context": True}, "generation error"),
        ({"label": 4, "answer_from_context": True, "faithfulness": 0.2}, "unsupported answer"),
        ({"label": 4, "faithfulness": 0.5}, "generation error"),
        ({"label": 4, "faithfulness": NAN, "answer_from_context": True}, "generation error"),
        ({"label": 4, "evidence_place": "middle"}, "lost in the middle"),
        ({"label": 1, "evidence_place": "middle"}, "lost in the middle"),
        ({"label": 5, "evidence_place": "middle"}, None),
        ({"label": 1, "evidence_place": None}, "generation error"),
        ({"label": None}, "judge missing"),
        ({"label": None, "answer": None}, "generation error"),
        ({"label": 1, "unanswerable": True}, None),
        ({"label": 5, "unanswerable": True}, "unsupported answer"),
        ({"label": None, "judge_status": NO_REFERENCE}, None),
        ({"label": None, "judged": False}, None),
    ],
)
def test_where_all_evidence_stands_in_the_context(columns: dict[str, Any], name: str | None) -> None:
    assert cause(topic(**columns), WHOLE) == name


def test_a_missing_verdict_goes_before_lost_evidence_as_nobody_knows_that_it_failed() -> None:
    lost = parts((1, 1, 0, 0, 0, 0, 0))
    assert cause(topic(label=None, judge_status="unreadable"), lost) == "judge missing"
    assert causes(topic(label=None, judge_status="unreadable"), lost)["decided_by"][0] == "no verdict: unreadable"
    assert cause(topic(label=None, answer=None, answer_error="HTTP 500"), lost) == "generation error"


def test_a_topic_without_evidence_says_so() -> None:
    assert cause(topic(), WHOLE.iloc[:0]) == "no evidence known"
    assert cause(topic(label=5), WHOLE.iloc[:0]) is None


def test_without_a_judge_lost_evidence_alone_fails() -> None:
    assert cause(topic(label=None, answer=None), WHOLE, judged=False) is None
    assert cause(topic(label=None, unanswerable=True), parts((1, 1, 0, 0, 0, 0, 0)), judged=False) is None


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
    assert list(table.index) == ["retrieval", "the LLM", "the corpus", "the budget", "the judge"]
    assert table["cause"].tolist() == ["not retrieved", "unsupported answer", "", "", ""]
    assert table["failures"].tolist() == [3, 1, 0, 0, 0]
    assert table["share"].tolist() == pytest.approx([3 / 6, 1 / 6, 0, 0, 0])
    assert table["n"].eq(6).all()


def test_failures_of_one_topic_in_many_systems_are_one_draw() -> None:
    one = failed()
    many = pd.concat([one.assign(system=str(i)) for i in range(5)], ignore_index=True)
    of_one, of_many = failure_origins(one), failure_origins(many)
    assert of_many["failures"].tolist() == [15, 5, 0, 0, 0]
    for end in ("share", "lo", "hi"):
        assert of_many[end].tolist() == pytest.approx(of_one[end].tolist())


def test_every_cause_but_the_unknown_has_an_origin() -> None:
    rows = pd.DataFrame({"qid": list(EVERY_CAUSE), CAUSE: list(EVERY_CAUSE)})
    assert failure_origins(rows)["failures"].sum() == len(EVERY_CAUSE) - 1


def test_causes_by_slice() -> None:
    table = causes_by_slice(failed()).set_index(["slice", "cause"])
    assert table["share"]["a", "not retrieved"] == pytest.approx(1 / 3)
    assert table["share"]["b", "not retrieved"] == pytest.approx(2 / 4)
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
