"""Which passages answers rest on, in three ways, and what that says of the ranking: values by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import check
from ragauge.contract.identity import identity
from ragauge.contract.protocols import Reply, Role
from ragauge.plugins.documents.alignment import IGNORED, INFOS, alignment
from ragauge.plugins.documents.attribution import credits, own_words, rests_on
from ragauge.plugins.documents.erag import ERag
from ragauge.plugins.documents.udcg import Udcg
from ragauge.plugins.documents.use import holds_evidence, use_values
from ragauge.retrieval.passages import standing

TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["Who built the tower?", "Is it tall?"],
                       "answer": ["Anna", "yes"]}).astype("str")  # fmt: skip
NO_EVIDENCE = pd.DataFrame({"qid": [], "part": [], "docno": [], "text": []}).astype(
    {"qid": "str", "docno": "str", "text": "str", "part": int}
)


def passages(ranks: Sequence[int] | None = None, **texts: Sequence[str]) -> pd.DataFrame:
    """Frame `used_passages`: texts by qid in the order of the context, by rank unless ranks are given."""
    rows = [
        (qid, 50, at, at if ranks is None else ranks[at], f"d{at}", text, len(text))
        for qid, own in texts.items()
        for at, text in enumerate(own)
    ]
    found = pd.DataFrame(rows, columns=["qid", "n_tokens", "position", "rank", "docno", "text", "chars"])
    return check("used_passages", found.astype({"qid": "str", "docno": "str", "text": "str"} | dict.fromkeys(
        ["n_tokens", "position", "rank", "chars"], int)))  # fmt: skip


def answers(**texts: str | None) -> pd.DataFrame:
    found = pd.DataFrame({"qid": list(texts), "n_tokens": 50, "status": "ok"}).astype({"qid": "str"})
    return found.assign(answer=pd.array(list(texts.values()), dtype="str"))


def evidence(*rows: tuple[str, str | None, str | None]) -> pd.DataFrame:
    found = pd.DataFrame(rows, columns=["qid", "docno", "text"]).assign(part=range(len(rows)))
    return found.astype({"qid": "str", "docno": "str", "text": "str"})


def by_measure(found: pd.DataFrame, qid: str = "q1") -> dict[str, Any]:
    """Value, or the status where there is none, by measure."""
    own = check("answer_values", found)[found["qid"] == qid]
    rows = zip(own["measure"], own["value"], own["status"], strict=True)
    return {name: status if np.isnan(value) else value for name, value, status in rows}


# --- the values ------------------------------------------------------------------------------------------


def test_the_values_by_hand_where_places_two_and_four_of_five_are_used() -> None:
    rows = standing(passages(q1=list("abcde")))
    used = np.array([False, True, False, True, False])
    holds = pd.Series([False, True, False, False, False], dtype="boolean")
    found = use_values(rows, used, holds, None, 0.8).loc["q1"]
    # Two are used, so two are top-ranked, of which place 2 alone is used.
    assert found["top_ranked_ignored_share"] == 0.5
    assert found["noise_used_share"] == 0.5
    assert found["used_rank"] == 3
    assert found["use_agreement"] == pytest.approx((0.8 + 0.8**3) / (1 + 0.8))
    assert use_values(rows, used, holds, 3, 0.8).loc["q1", "top_ranked_ignored_share"] == pytest.approx(2 / 3)
    assert use_values(rows, used, holds, 9, 0.8).loc["q1", "top_ranked_ignored_share"] == pytest.approx(3 / 5)


def test_what_is_used_first_agrees_wholly_and_nothing_used_is_all_ignored() -> None:
    rows = standing(passages(q1=list("abc"), q2=list("ab")))
    holds = pd.Series([pd.NA] * 5, dtype="boolean")
    found = use_values(rows, np.array([True, True, False, False, False]), holds, None, 0.8)
    assert found.loc["q1"].tolist() == pytest.approx([1, 0, np.nan, 1.5, 1], nan_ok=True)
    assert found.loc["q2"].tolist() == pytest.approx([0, 1, np.nan, np.nan, np.nan], nan_ok=True)


def test_places_are_those_by_rank_whatever_the_order_of_the_context() -> None:
    rows = standing(passages(ranks=[7, 0, 3], q1=list("abc")))
    assert rows["place"].tolist() == [3, 1, 2]
    found = use_values(rows, np.array([False, True, False]), pd.Series([pd.NA] * 3, dtype="boolean"), None, 0.8)
    assert found.loc["q1", "use_agreement"] == 1


def test_evidence_is_held_where_half_of_the_shorter_text_stands_in_one_piece() -> None:
    own = evidence(("q1", "d", "Anna built the tower in 1902."))
    rows = standing(
        passages(
            q1=[
                "They say: Anna built  the\ntower in 1902. It stands.",  # whole, white space folded
                "they know that Anna built the tower",  # 20 of 29 characters
                "Anna of Graz",  # 5 of 12: too little
                "the tower in 1902",  # a short passage, all of it
                "Otto built the tower?",  # " built the tower": 16 of 21
            ],
            q2=["Anna built the tower in 1902."],
        )
    )
    assert holds_evidence(rows, own, TOPICS).tolist() == [True, True, False, True, True, pd.NA]


def test_evidence_without_text_is_held_by_the_chunks_of_its_document() -> None:
    own = evidence(("q1", "d1", None))
    rows = standing(passages(q1=["x", "y", "z"])).assign(docno=["d1%p0", "d10%p0", "d1"])
    assert holds_evidence(rows, own, TOPICS).tolist() == [True, False, True]
    marked = TOPICS.assign(unanswerable=[True, False])
    assert holds_evidence(rows, own, marked).isna().all()


# --- by words and vectors --------------------------------------------------------------------------------


class Fixed:
    """Cosines that are known: every question is (1, 0), a text's vector is looked up."""

    def __init__(self, **cosines: float) -> None:
        self.cosines = cosines

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        found = [1.0 if role == "query" else self.cosines[text.split()[0]] for text in texts]
        return np.array([[c, np.sqrt(1 - c * c)] for c in found], dtype=np.float32)


def test_own_words_are_the_answers_content_words_that_the_question_has_not() -> None:
    assert own_words("Who built the tower?", "The tower was built by Anna of Graz.") == {"anna", "graz"}
    assert own_words("Is the tower in Graz or Linz?", "Graz") == {"tower", "graz", "linz"}
    assert own_words("Is it?", "Yes") == frozenset()


def test_a_words_credit_is_divided_among_the_passages_that_hold_it() -> None:
    rows = standing(passages(q1=["alpha Anna in Graz", "beta Anna", "gamma Linz"]))
    asked = {"q1": ("Who?", "Anna, Graz 1902")}
    # Own words anna, graz, 1902: Anna stands in two passages, Graz in one, 1902 in none.
    found = credits(rows, asked)
    assert found["held"].tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    assert found["credit"].tolist() == pytest.approx([(1 / 2 + 1) / 3, (1 / 2) / 3, 0])
    assert found["credit"].sum() == pytest.approx(2 / 3)  # what any passage holds
    by_cosine = credits(rows, asked, Fixed(alpha=0.6, beta=0.2, gamma=0.9))
    assert by_cosine["credit"].tolist() == pytest.approx([(3 / 4 + 1) / 3, (1 / 4) / 3, 0])
    # None of those that hold the word is like the question: equal shares again.
    assert credits(rows, asked, Fixed(alpha=-0.5, beta=-0.1, gamma=0.9))["credit"].tolist() == pytest.approx(
        [1.5 / 3, 0.5 / 3, 0]
    )


def test_credits_are_the_shapley_values_of_coverage() -> None:
    from itertools import permutations

    texts = ["anna graz", "anna linz wien", "wien", "nothing"]
    rows = standing(passages(q1=texts))
    found = credits(rows, {"q1": ("?", "anna graz linz wien")})["credit"].to_numpy()
    sets = [set(text.split()) & {"anna", "graz", "linz", "wien"} for text in texts]
    shapley = np.zeros(len(texts))
    orders = list(permutations(range(len(texts))))
    for order in orders:
        covered: set[str] = set()
        for i in order:
            shapley[i] += len(sets[i] - covered) / 4
            covered |= sets[i]
    assert found == pytest.approx(shapley / len(orders))


def test_an_answer_rests_on_passages_that_hold_enough_and_have_enough_of_the_best_credit() -> None:
    rows = pd.DataFrame({"qid": ["q1"] * 4 + ["q2"]})
    found = pd.DataFrame({"held": [0.9, 0.5, 0.1, 0.3, 0.1], "credit": [0.4, 0.1, 0.9, 0.05, 0.1]})
    assert rests_on(rows, found, held=0.2, share=0.25).tolist() == [True, True, False, False, False]


def test_equal_passages_are_used_alike() -> None:
    rows = passages(q1=["Anna built the tower", "Anna built the tower", "Snow"])
    found = alignment(vectors=False).measure_passages(
        TOPICS, NO_EVIDENCE, rows, answers(q1="Anna", q2="yes"), SimpleNamespace()
    )
    assert {n: v if isinstance(v, str) else round(v, 12) for n, v in by_measure(found).items()} == {
        "rests_on_context": 1,
        "top_ranked_ignored_share": 0,
        "noise_used_share": "no evidence",
        "used_rank": 1.5,
        "use_agreement": 1,
    }
    assert set(by_measure(found, "q2").values()) == {"no context"}
    detail = json.loads(found.loc[found["detail"].notna(), "detail"].item())
    assert detail == {"used": ["d0", "d1"], "scores": {"d0": 0.5, "d1": 0.5, "d2": 0}}


def test_an_answer_that_no_passage_holds_rests_on_nothing_and_a_missing_one_has_no_value() -> None:
    rows = passages(q1=["Snow", "Rivers"], q2=["Snow"])
    own = evidence(("q1", None, "Snow"))
    found = alignment(vectors=False).measure_passages(TOPICS, own, rows, answers(q1="Anna", q2=None), SimpleNamespace())
    assert by_measure(found) == {
        "rests_on_context": 0,
        "top_ranked_ignored_share": 1,
        "noise_used_share": "nothing used",
        "used_rank": "nothing used",
        "use_agreement": "nothing used",
    }
    assert set(by_measure(found, "q2").values()) == {"no answer"}


@pytest.mark.parametrize("by", ["words", "llm", "leave_one_out"])
def test_without_any_hits_there_are_values_of_no_topic(by: str) -> None:
    measure: Any = alignment(by=by, **({"vectors": False} if by == "words" else {}))
    rows, own = passages(), answers(q1="Anna", q2=None)
    tools = SimpleNamespace(chat=None, store=None)
    if by == "leave_one_out":
        varied = measure.vary(TOPICS, rows, 50, tools).assign(answer=pd.array([], dtype="str"), status="")
        found = measure.measure_varied(TOPICS, NO_EVIDENCE, rows, varied, own, tools)
    else:
        tools.chat = Chat()
        found = measure.measure_passages(TOPICS, NO_EVIDENCE, rows, own, tools)
    assert set(by_measure(found).values()) == {"no context"}
    assert set(by_measure(found, "q2").values()) == {"no answer"}


# --- by the LLM ------------------------------------------------------------------------------------------


class Chat:
    """Replies by a part of the prompt, and what was asked."""

    def __init__(self, **replies: str | None) -> None:
        self.replies = replies
        self.asked: list[str] = []

    def ask(self, prompts: Sequence[str], store: object, what: str, readers: Any = ()) -> list[Reply]:
        self.asked += prompts
        return [
            Reply(next(reply for part, reply in self.replies.items() if part in prompt), None) for prompt in prompts
        ]


def test_the_model_names_the_passages_and_equal_answers_to_equal_contexts_are_one_request() -> None:
    rows = passages(ranks=[1, 0], q1=["Snow {x} $y", "Anna built it"], q2=["Snow {x} $y", "Anna built it"])
    topics = TOPICS.assign(query="Who?")
    chat = Chat(Anna='{"used": [2]}')
    tools = SimpleNamespace(chat=chat, store=None)
    found = alignment(by="llm").measure_passages(topics, NO_EVIDENCE, rows, answers(q1="Anna", q2="Anna"), tools)
    assert len(chat.asked) == 1
    assert "[1] Snow {x} $y\n[2] Anna built it" in chat.asked[0]
    assert by_measure(found)["used_rank"] == by_measure(found, "q2")["used_rank"] == 1


@pytest.mark.parametrize(
    "reply",
    [
        '{"used": [3]}', '{"used": [0]}', '{"used": [1, 1]}', '{"used": [true]}', '{"used": "1"}',
        '{"used": ["1"]}',
        "[1]", "1", "used: 1", "", '{"used": [1]} or {"used": [2]}', '{"used": [1.0]}',
    ],
)  # fmt: skip
def test_a_reply_that_is_not_what_was_asked_for_is_missing(reply: str) -> None:
    chat = Chat(Anna=reply)
    found = alignment(by="llm").measure_passages(
        TOPICS, NO_EVIDENCE, passages(q1=["Snow", "Anna"]), answers(q1="Anna"),
        SimpleNamespace(chat=chat, store=None),
    )  # fmt: skip
    assert set(by_measure(found).values()) == {"unreadable"}


def test_a_failed_request_is_missing_and_none_is_used_where_the_model_names_none() -> None:
    chat = Chat(Anna=None, built='{"used": []}')
    found = alignment(by="llm").measure_passages(
        TOPICS, NO_EVIDENCE, passages(q1=["Snow"], q2=["Hill"]), answers(q1="Anna", q2="built"),
        SimpleNamespace(chat=chat, store=None),
    )  # fmt: skip
    assert set(by_measure(found).values()) == {"failed"}
    assert by_measure(found, "q2")["top_ranked_ignored_share"] == 1


# --- by leaving out --------------------------------------------------------------------------------------


def test_leaving_each_passage_out_keeps_the_others_in_their_order() -> None:
    measure: Any = alignment(by="leave_one_out")
    cut = passages(q1=["one", "two", "three more"])
    cut.loc[2, "chars"] = 5
    found = measure.vary(TOPICS, cut, 50, SimpleNamespace())
    assert found["text"].tolist() == ["two three", "one three", "one two"]
    assert found["variant"].tolist() == [0, 1, 2]


def test_a_passage_counts_whose_absence_changes_the_answer() -> None:
    measure: Any = alignment(by="leave_one_out")
    rows = passages(q1=["one", "two", "three"], q2=["one"])
    varied = pd.DataFrame(
        {
            "qid": ["q1", "q1", "q1", "q2"],
            "n_tokens": 50,
            "variant": [0, 1, 2, 0],
            "answer": ["Anna of Graz", "I do not know", "Anna, of Linz", None],
            "status": "ok",
        }
    ).astype({"qid": "str", "answer": "str"})
    found = measure.measure_varied(
        TOPICS, NO_EVIDENCE, rows, varied, answers(q1="Anna of Graz", q2="yes"), SimpleNamespace()
    )
    # Without the third it is 2/3 the same in F1: a distance of 1/3 is no other answer.
    assert by_measure(found)["used_rank"] == 2
    assert set(by_measure(found, "q2").values()) == {"failed"}
    nearer: Any = alignment(by="leave_one_out", changed=0.3)
    found = nearer.measure_varied(
        TOPICS, NO_EVIDENCE, rows, varied, answers(q1="Anna of Graz", q2="yes"), SimpleNamespace()
    )
    assert by_measure(found)["used_rank"] == 2.5


# --- config and warning ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"by": "vectors"}, "answers.alignment.by='vectors': allowed are words, llm, leave_one_out"),
        ({"top": 0}, "answers.alignment.top=0: allowed are integers from 1, and null"),
        ({"persistence": 1.0}, "answers.alignment.persistence=1.0: allowed are numbers above 0 to 0.999"),
        ({"held": -1}, "answers.alignment.held=-1: allowed are numbers from 0 to 1"),
        ({"share": 2}, "answers.alignment.share=2: allowed are numbers from 0 to 1"),
        (
            {"by": "leave_one_out", "changed": 0},
            "answers.alignment.changed=0: allowed are numbers above",
        ),
        ({"by": "llm", "prompt": "$question"}, "answers.alignment.prompt='$question': must hold"),
    ],
)
def test_what_cannot_be_is_one_line(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        alignment(**given)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_not_set_is_as_the_guide_says() -> None:
    usual = {"top": None, "persistence": 0.8}
    assert asdict(alignment()) == usual | {"held": 0.2, "share": 0.25, "vectors": True}
    assert asdict(alignment(by="leave_one_out")) == usual | {"changed": 0.5}
    assert asdict(Udcg()) == {"depth": 10, "distraction": 1 / 3}
    versions = {part: identity(part)["version"] for part in (alignment(), alignment(by="llm"), Udcg(), ERag())}
    assert list(versions.values()) == [2, 2, 1, 1]
    measures = ("P@1", "P@5", "nDCG@10", "RR")
    assert asdict(ERag()) == {"depth": 10, "by": "contains", "relevant": 0.5, "measures": measures}


def test_more_than_three_in_ten_ignored_is_told() -> None:
    [info] = [info for info in INFOS if info.name == IGNORED]
    assert info.warning(0.3) is None
    assert info.warning(float("nan")) is None
    assert "31.0%" in str(info.warning(0.31))
    assert str(info.warning(0.5, "bm25")).startswith("bm25: answers rest on other passages")
