"""eRAG: labels from answers of single texts, and measures of the ranking by them."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import check
from ragauge.plugins.documents.erag import ERag
from ragauge.texts.tokenizers import WordTokenizer

TOOLS: Any = SimpleNamespace(tokenizer=WordTokenizer())
TOPICS = pd.DataFrame(
    {"qid": ["q1", "q2", "q3"], "query": ["a?", "b?", "c?"], "answer": ["Anna", "Linz", None]}
).astype("str")
EVIDENCE = pd.DataFrame({"qid": [], "part": [], "docno": [], "text": []})


def hits(**texts: list[str]) -> pd.DataFrame:
    """A ranking: texts by qid, best first."""
    rows = [(q, rank, f"{q}-{rank}", text) for q, own in texts.items() for rank, text in enumerate(own)]
    return pd.DataFrame(rows, columns=["qid", "rank", "docno", "text"]).astype({"rank": int})


def answers(*qids: str, n_tokens: int = 50) -> pd.DataFrame:
    found = pd.DataFrame({"qid": qids, "n_tokens": n_tokens, "answer": "x", "status": "ok"})
    return found.astype({"qid": "str", "answer": "str"})


def answered(contexts: pd.DataFrame, missing: str | None = None) -> pd.DataFrame:
    """Every text is its own answer; the one that is `missing` got none."""
    found = [None if text == missing else text for text in contexts["text"]]
    return contexts.assign(answer=pd.array(found, dtype="str"), status="ok")


def values(erag: ERag, varied: pd.DataFrame, *qids: str, n_tokens: int = 50) -> pd.DataFrame:
    return check(
        "answer_values",
        erag.measure_varied(TOPICS, EVIDENCE, hits(), varied, answers(*qids, n_tokens=n_tokens), TOOLS),
    )


def test_each_text_alone_is_labelled_by_its_answer_and_the_ranking_measured_by_the_labels() -> None:
    erag = ERag(depth=4, measures=("P@2", "P@4", "nDCG@4", "RR", "AP", "R@2", "Success@1"))
    ranking = hits(q1=["no", "Anna did", "nobody", "it was Anna", "Anna, too deep"], q2=["Graz", "Wien"])
    contexts = erag.vary(TOPICS, ranking, 50, TOOLS)
    assert contexts["variant"].tolist() == [0, 1, 2, 3, 0, 1]
    assert contexts["n_tokens"].tolist() == [1, 2, 1, 3, 1, 1]
    found = values(erag, answered(contexts), "q1", "q2", "q3")
    assert (found.loc[found["qid"] == "q3", "status"] == "no reference").all()
    own = found[found["qid"] == "q1"].set_index("measure")["value"]
    # Labels 0 1 0 1: 1/2 at two, 2/4 at four, first at rank 2; AP = (1/2 + 2/4) / 2.
    assert own.to_dict() == pytest.approx(
        {
            "erag_p_at_2": 0.5,
            "erag_p_at_4": 0.5,
            "erag_ndcg_at_4": (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3)),
            "erag_rr": 0.5,
            "erag_ap": 0.5,
            "erag_r_at_2": 0.5,
            "erag_success_at_1": 0,
        }
    )
    assert (found.loc[found["qid"] == "q2", "value"] == 0).all()
    detail = found[(found["qid"] == "q1") & (found["measure"] == "erag_p_at_2")]["detail"].item()
    assert json.loads(detail) == {"labels": {"0": 0, "1": 1, "2": 0, "3": 1}}


def test_graded_labels_are_gains_of_ndcg_and_relevant_from_a_label_on() -> None:
    erag = ERag(depth=3, by="f1", measures=("nDCG@3", "P@3"), relevant=0.6)
    ranking = hits(q1=["Anna of Graz", "Anna", "no"])
    found = values(erag, answered(erag.vary(TOPICS, ranking, 50, TOOLS)), "q1").set_index("measure")["value"]
    # F1 of "Anna of Graz" is 2 * 1 / (3 + 1) = 0.5, of "Anna" 1.
    half = 0.5 + 1 / math.log2(3)
    assert found["erag_ndcg_at_3"] == pytest.approx(half / (1 + 0.5 / math.log2(3)))
    assert found["erag_p_at_3"] == pytest.approx(1 / 3)


def test_the_judges_class_five_is_the_label() -> None:
    erag = ERag(depth=2, by="judge", measures=("P@2", "RR"))
    assert erag.judged
    assert "judge" in erag.needs
    contexts = erag.vary(TOPICS, hits(q1=["a", "b"], q2=["a", "b"]), 50, TOOLS)
    varied = answered(contexts).assign(label=pd.array([3, 5, None, 5], dtype="Int8"))
    found = values(erag, varied, "q1", "q2")
    assert found.loc[found["qid"] == "q1", "value"].tolist() == [0.5, 0.5]
    missing = found[found["qid"] == "q2"]
    assert missing["value"].isna().all()
    assert (missing["status"] == "failed").all()


def test_no_hits_score_zero_and_a_failed_answer_is_no_value_of_its_topic_alone() -> None:
    erag = ERag(depth=2, measures=("P@1", "RR"))
    contexts = erag.vary(TOPICS, hits(q1=["Anna", "lost"]), 50, TOOLS)
    found = values(erag, answered(contexts, missing="lost"), "q1", "q2")
    assert found.loc[found["qid"] == "q1", "status"].tolist() == ["failed", "failed"]
    assert found.loc[found["qid"] == "q1", "value"].isna().all()
    assert found.loc[found["qid"] == "q2", "value"].tolist() == [0, 0]
    # Nobody has any hits; and a job that gives the LLM no context has no such values.
    nothing = erag.vary(TOPICS, hits(), 50, TOOLS)
    assert values(erag, answered(nothing), "q1", "q2")["value"].tolist() == [0, 0, 0, 0]
    cut = erag.vary(TOPICS, hits(q1=["Anna"]), 0, TOOLS)
    assert cut.empty
    assert (values(erag, answered(cut), "q1", n_tokens=0)["status"] == "no context").all()


def test_the_budget_cuts_a_longer_text_alone_and_leaves_the_others_as_they_are() -> None:
    erag = ERag(depth=2, measures=("P@1",))
    ranking = hits(q1=["one two three four", "one two"])
    short, long = (erag.vary(TOPICS, ranking, n, TOOLS) for n in (3, 100))
    assert short["text"].tolist() == ["one two three", "one two"]
    assert long["text"].tolist() == ["one two three four", "one two"]
    assert short["n_tokens"].tolist() == [3, 2]
    assert long["n_tokens"].tolist() == [4, 2]


def test_unanswerable_topics_have_no_reference_that_a_text_could_bring() -> None:
    topics = TOPICS.assign(unanswerable=[True, False, False])
    contexts = ERag().vary(topics, hits(q1=["Anna"], q2=["Linz"], q3=["x"]), 50, TOOLS)
    assert contexts["qid"].tolist() == ["q2"]


def brute_force(labels: np.ndarray, relevant: float, k: int) -> dict[str, float]:
    """P@k, nDCG@k and RR from the labels in rank order."""
    gain = [label / math.log2(i + 2) for i, label in enumerate(labels[:k])]
    best = [label / math.log2(i + 2) for i, label in enumerate(sorted(labels, reverse=True)[:k])]
    right = [i for i, label in enumerate(labels) if label >= relevant]
    return {
        f"P@{k}": sum(i < k for i in right) / k,
        f"nDCG@{k}": sum(gain) / sum(best) if sum(best) else 0.0,
        "RR": 1 / (right[0] + 1) if right else 0.0,
    }


@pytest.mark.parametrize("seed", range(20))
def test_measures_are_those_of_a_brute_force_twin(seed: int) -> None:
    dice = np.random.default_rng(seed)
    depth, k = int(dice.integers(1, 12)), 1
    k = int(dice.integers(1, depth + 1))
    erag = ERag(depth=depth, measures=(f"P@{k}", f"nDCG@{k}", "RR"), relevant=0.4)
    rows = []
    wanted = {}
    for qid in ("q1", "q2", "q3"):
        labels = dice.integers(0, 11, size=int(dice.integers(1, depth + 1))) / 10
        rows += [(qid, i, label) for i, label in enumerate(labels)]
        wanted[qid] = brute_force(labels, 0.4, k)
    found = erag.ranked(pd.DataFrame(rows, columns=["qid", "variant", "label"]))
    for qid, own in wanted.items():
        assert {name: found[name][qid] for name in own} == pytest.approx(own), qid


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"depth": 0}, "answers.erag.depth=0: allowed are integers from 1"),
        ({"by": "bleu"}, "answers.erag.by='bleu': allowed are contains, em, f1, judge"),
        ({"relevant": 1.2}, "answers.erag.relevant=1.2: allowed are numbers from"),
        ({"measures": []}, "answers.erag.measures=[]: allowed are lists"),
        ({"measures": "P@1"}, "answers.erag.measures='P@1': allowed are lists"),
        ({"measures": ["P"]}, "answers.erag.measures: 'P': allowed are P@k"),
        ({"measures": ["Judged@10"]}, "answers.erag.measures: 'Judged@10': allowed are P@k"),
        ({"measures": [1]}, "answers.erag.measures: 1: allowed are P@k"),
        ({"measures": ["P@20"]}, "'P@20' looks at 20 texts, and answers.erag.depth=10 of them"),
        ({"measures": ["RR", "RR"]}, "a name stands there twice"),
    ],
)
def test_what_cannot_be_is_one_line(values: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        ERag(**values)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
