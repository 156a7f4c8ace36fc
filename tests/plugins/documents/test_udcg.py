"""UDCG: the published value, values by hand and by a twin, what is missing, and a job."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.answering.judges import LexicalJudge
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import check
from ragauge.plugins.documents.udcg import Udcg, udcg
from ragauge.texts.tokenizers import WordTokenizer
from small_pipeline import SmallPipelines, own_values

TOOLS: Any = SimpleNamespace(tokenizer=WordTokenizer())
TOPICS = pd.DataFrame(
    {"qid": ["q1", "q2", "q3", "q4"], "query": list("abcd"), "answer": ["Anna", "Linz", None, "Graz"]}
).astype("str")
EVIDENCE = pd.DataFrame(
    {"qid": ["q1", "q2"], "part": [0, 0], "docno": [None, None], "text": ["Anna built it.", "It is in Linz."]}
)


def hits(**texts: list[str]) -> pd.DataFrame:
    rows = [(q, rank, f"{q}-{rank}", text) for q, own in texts.items() for rank, text in enumerate(own)]
    return pd.DataFrame(rows, columns=["qid", "rank", "docno", "text"]).astype({"rank": int})


def measured(measure: Udcg, ranking: pd.DataFrame, labels: list[int | None]) -> pd.DataFrame:
    """The values where the judge gives the answers from the single texts these labels."""
    contexts = measure.vary(TOPICS, ranking, 50, TOOLS)
    varied = contexts.assign(answer="x", status="ok", label=pd.array(labels, dtype="Int8"))
    answers = pd.DataFrame({"qid": TOPICS["qid"], "n_tokens": 50, "answer": "x", "status": "ok"})
    found = measure.measure_varied(TOPICS, EVIDENCE, ranking, varied, answers, TOOLS)
    return check("answer_values", found).set_index(["measure", "qid"])


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_the_value_equals_the_one_that_the_authors_publish() -> None:
    """The first example of their repository: two relevant passages, three that are not, weighed by 0.333."""
    abstains = [2.086162567138672e-06, 1.341104507446289e-05, 0.1318359375, 0.1812744140625, 0.02081298828125]
    utilities = [(1 - p) * (1 if rank < 2 else -0.333) for rank, p in enumerate(abstains)]
    assert udcg(utilities) == pytest.approx(0.5553808928170055, abs=1e-12)


def test_texts_that_help_count_for_and_those_that_mislead_against() -> None:
    ranking = hits(q1=["Anna built it.", "Bob did.", "Nobody knows.", "Anna built it. So.", "too deep"], q2=["Graz"])
    found = measured(Udcg(depth=4), ranking, [5, 4, 1, 1, 2])
    # Utilities 1, -1/3, 0 (it abstains), 0 (it holds evidence, and the llm abstains all the same).
    assert found.loc[("udcg", "q1"), "value"] == pytest.approx(logistic((1 - 1 / 3) / 4))
    assert found.loc[("distracting_passages", "q1"), "value"] == pytest.approx(1 / 4)
    utilities = {"0": 1.0, "1": -0.3333, "2": 0.0, "3": 0.0}
    assert json.loads(found.loc[("udcg", "q1"), "detail"]) == {"utilities": utilities}
    assert found.loc[("udcg", "q2"), "value"] == pytest.approx(logistic(-1 / 3))
    assert found.loc[("udcg", ["q3", "q4"]), "status"].tolist() == ["no reference", "no evidence"]


def test_the_values_equal_those_of_a_twin() -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        n = int(rng.integers(0, 8))
        held, labels = rng.random(n) < 0.4, rng.integers(1, 6, n)
        texts = ["Anna built it." if holds else f"nothing {i}" for i, holds in enumerate(held)]
        weight, total = float(rng.uniform(0, 1)), 0.0
        for holds, label in zip(held, labels, strict=True):
            total += (1 if holds else -weight) * (0 if label == 1 else 1)
        found = measured(Udcg(depth=8, distraction=weight), hits(q1=texts), labels.tolist())
        assert found.loc[("udcg", "q1"), "value"] == pytest.approx(logistic(total / n if n else 0))


def test_a_failed_verdict_is_no_value_and_no_hits_are_one_half() -> None:
    found = measured(Udcg(), hits(q1=["Anna built it.", "no"]), [5, None])
    assert found.loc[("udcg", "q1"), "status"] == "failed"
    assert found.loc[("udcg", "q2"), ["value", "status"]].tolist() == [0.5, "ok"]
    assert found.loc[("distracting_passages", "q2"), "value"] == 0


def test_a_job_answers_from_each_text_and_judges(small: SmallPipelines) -> None:
    job = small(answers={"udcg": Udcg(depth=2)}, judge=LexicalJudge())
    values = own_values(job).set_index(["measure", "qid"])["value"]
    assert values.notna().all()
    assert values["udcg"].gt(0.5).any()
    assert "udcg" in job.outcomes


def test_settings_out_of_range_are_named() -> None:
    for given in ({"distraction": 1.5}, {"distraction": -0.1}, {"depth": 0}):
        with pytest.raises(ConfigError, match=rf"answers\.udcg\.{next(iter(given))}"):
            Udcg(**given)  # type: ignore[arg-type]
    assert Udcg(distraction=0, depth=1).infos[0].label == "UDCG@1, abstention by the judge"
