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

from ragauge.contract.component import ChatModel, Embedder, Role
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import check
from ragauge.contract.identity import identity
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.replies import Reply
from ragauge.plugins.documents.alignment import IGNORED, INFOS, alignment
from ragauge.plugins.documents.attribution import own_words
from ragauge.plugins.documents.erag import ERag
from ragauge.plugins.documents.udcg import Udcg
from ragauge.plugins.documents.use import holds_evidence
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


# --- by words and vectors --------------------------------------------------------------------------------


class Fixed(Embedder):
    """Cosines that are known: every question is (1, 0), a text's vector is looked up."""

    def __init__(self, **cosines: float) -> None:
        self.cosines = cosines

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        found = [1.0 if role == "query" else self.cosines[text.split()[0]] for text in texts]
        return np.array([[c, np.sqrt(1 - c * c)] for c in found], dtype=np.float32)


# Of each topic the answer, its own words, and of each passage, as the context has them: rank, cosine, text.
WORLD: dict[str, tuple[str | None, str, list[tuple[int, float, str]]]] = {
    "q1": ("Anna of Graz in 1902", "anna graz 1902",
           [(1, 0.6, "alpha Anna in Graz has a tall tower"), (0, 0.2, "beta Anna"), (2, 0.9, "gamma")]),
    "q2": ("Otto", "otto", [(0, 0.9, "delta"), (1, 0.3, "epsilon Otto"), (3, 0.9, "zeta"), (2, 0.3, "eta Otto"),
                            (9, 0.1, "theta")]),
    "q3": ("Berta Linz", "berta linz", [(5, -0.5, "iota Berta"), (6, -0.1, "kappa Berta"), (7, 0.8, "lambda Linz")]),
    "q4": ("Emil", "emil", [(0, 0.5, "mu Emil"), (1, 0.5, "nu")]),
    "q5": ("Snow", "snow", []),
    "q6": (None, "", [(0, 0.5, "xi")]),
    "q7": ("Rain", "rain", [(0, 0.5, "omicron"), (1, 0.4, "pi")]),
    "q8": ("Uma Vera Wim Xaver Yann Zoe", "uma vera wim xaver yann zoe",
           [(0, 0.9, "rho Uma"), (1, 0.5, "sigma Uma Vera"), (2, 0.0, "tau Wim Zoe")]),
}  # fmt: skip
# q2's evidence is a document without a text, q4 is unanswerable, and q3, q5, q6 and q8 have none.
HOLDING = {"q1": [True, False, False], "q2": [False, True, False, False, False], "q7": [True, False]}


def by_hand(qid: str, top: int | None, vectors: bool) -> tuple[dict[str, Any], list[float]]:
    """The values of a topic, or why there is none, and the credits of its passages."""
    answer, words, found = WORLD[qid]
    if answer is None or not found:
        return dict.fromkeys([info.name for info in INFOS], "no answer" if answer is None else "no context"), []
    held, credit = [], []
    for _, cosine, text in found:
        mine = [word for word in words.split() if word in text.lower().split()]
        held.append(len(mine) / len(words.split()))
        credit.append(0.0)
        for word in mine:
            shares = [max(c, 0) if vectors else 1 for _, c, t in found if word in t.lower().split()]
            own = max(cosine, 0) if vectors else 1
            credit[-1] += (own / sum(shares) if sum(shares) else 1 / len(shares)) / len(words.split())
    best = max((c for c, h in zip(credit, held, strict=True) if h >= 0.2), default=0)
    used = [h >= 0.2 and c > 0 and c >= 0.25 * best for c, h in zip(credit, held, strict=True)]
    places = [1 + sum(other < rank for other, *_ in found) for rank, *_ in found]
    at = [place for place, is_used in zip(places, used, strict=True) if is_used]
    first = min(top or max(len(at), 1), len(found))
    values: dict[str, Any] = {
        "rests_on_context": float(bool(at)),
        IGNORED: 1 - sum(place <= first for place in at) / first,
        **dict.fromkeys(("noise_used_share", "used_rank", "use_agreement"), "nothing used"),
    }
    if at:
        ideal = sum(0.8**i for i in range(len(at)))
        values |= {"used_rank": sum(at) / len(at), "use_agreement": sum(0.8 ** (p - 1) for p in at) / ideal}
        noise = [not holds for holds, is_used in zip(HOLDING.get(qid, used), used, strict=True) if is_used]
        values["noise_used_share"] = sum(noise) / len(noise)
    return values | ({} if qid in HOLDING else {"noise_used_share": "no evidence"}), credit


@pytest.mark.parametrize(("top", "vectors"), [(None, True), (None, False), (2, True), (9, False)])
def test_what_answers_rest_on_by_hand(top: int | None, vectors: bool) -> None:
    rows = passages(**{qid: [text for *_, text in found] for qid, (*_, found) in WORLD.items()})
    rows["rank"] = [rank for *_, found in WORLD.values() for rank, *_ in found]
    rows["docno"] += "%p0"
    topics = pd.DataFrame({"qid": list(WORLD), "query": "Who?", "answer": "x"}).assign(unanswerable=False)
    topics.loc[topics["qid"] == "q4", "unanswerable"] = True
    own = evidence(("q1", "d9", "Graz has a tall tower"), ("q2", "d1", None), ("q4", "d0", "mu Emil"),
                   ("q7", "d0", "omicron"), ("q7", "d0", " "))  # fmt: skip
    cosines = {text.split()[0]: cosine for *_, found in WORLD.values() for _, cosine, text in found}
    told = answers(**{qid: answer for qid, (answer, *_) in WORLD.items()})
    found = alignment(top=top, vectors=vectors).measure_passages(
        topics, own, rows, told, SimpleNamespace(embedder=Fixed(**cosines))
    )
    details = found[found["measure"] == IGNORED].set_index("qid")["detail"]
    for qid in WORLD:
        values, credit = by_hand(qid, top, vectors)
        assert by_measure(found, qid) == {
            name: value if isinstance(value, str) else pytest.approx(value) for name, value in values.items()
        }, qid
        if credit:
            scores = json.loads(details[qid])["scores"]
            assert scores == {f"d{i}%p0": pytest.approx(c, abs=5e-5) for i, c in enumerate(credit)}
    assert json.loads(details["q2"])["used"] == ["d1%p0", "d3%p0"]
    assert found["detail"].notna().sum() == 6


def test_own_words_are_the_answers_content_words_that_the_question_has_not() -> None:
    assert own_words("Who built the tower?", "The tower was built by Anna of Graz.") == {"anna", "graz"}
    assert own_words("Is the tower in Graz or Linz?", "Graz") == {"tower", "graz", "linz"}
    assert own_words("Is it?", "Yes") == frozenset()


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


class Chat(ChatModel):
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
        TOPICS, NO_EVIDENCE, passages(q1=["Snow"], q2=["Hill", "Tower"]), answers(q1="Anna", q2="built"),
        SimpleNamespace(chat=chat, store=None),
    )  # fmt: skip
    assert set(by_measure(found).values()) == {"failed"}
    assert by_measure(found, "q2")["top_ranked_ignored_share"] == 1
    assert len(chat.asked) == 2


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
    rows = passages(q1=["one", "two", "three", "four"], q2=["one"])
    varied = pd.DataFrame(
        {
            "qid": ["q1", "q1", "q1", "q1", "q2"],
            "n_tokens": 50,
            "variant": [0, 1, 2, 3, 0],
            "answer": ["Anna of Graz", "I do not know", "Anna", "Anna, of Linz", None],
            "status": "ok",
        }
    ).astype({"qid": "str", "answer": "str"})
    for made in (varied, varied.head(4)):
        found = measure.measure_varied(
            TOPICS, NO_EVIDENCE, rows, made, answers(q1="Anna of Graz", q2="yes"), SimpleNamespace()
        )
        # Without the fourth it is 2/3 the same in F1: a distance of 1/3 is no other answer, and one of 1/2 is.
        assert by_measure(found)["used_rank"] == 2.5
        scores = json.loads(found["detail"].dropna().iloc[0])["scores"]
        assert scores == {"d0": 0.0, "d1": 1.0, "d2": 0.5, "d3": 0.3333}
        assert set(by_measure(found, "q2").values()) == {"failed"}
    nearer: Any = alignment(by="leave_one_out", changed=0.3)
    found = nearer.measure_varied(
        TOPICS, NO_EVIDENCE, rows, varied, answers(q1="Anna of Graz", q2="yes"), SimpleNamespace()
    )
    assert by_measure(found)["used_rank"] == 3


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
    parts = [alignment(), alignment(vectors=False), alignment(by="llm"), alignment(by="leave_one_out")]
    assert [set(part.uses) for part in parts] == [{"embedder"}, set(), {"chat"}, set()]
    assert "$passages" in identity(parts[2])["prompt"]
    assert ERag().infos[0] == AnswerMeasureInfo(
        "erag_p_at_1", "eRAG P@1", section="Documents by their use", of="ranking"
    )
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
