"""Outputs that no small job shows: answer measures on many random texts, and the estimates from a table of verdicts."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir

from options import CONF
from ragauge.experiment.setup import config
from ragauge.experiment.stages.components import instantiate_components
from ragauge.findings import estimates
from ragauge.store import Store

Made = tuple[str, int, pd.DataFrame]  # a name, a version, an output
_WORDS = ["the", "The", "cat", "cat,", "sat.", "on", "a", "mat", "x-ray", "4.6", "U.S.", "é", "北京", "$5", "yes", "No"]
_MEASURES = ("usual", "rouge_1", "rouge_2", "bleu", "chrf")


def answer_measures() -> list[Made]:
    """The values of the measures that compare words, on 60 random answers."""
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("config", overrides=[f"answers=[{','.join(_MEASURES)}]", "llm=recorded", "llm.path=unread"])
        measures = instantiate_components(cfg).answers
    rng = random.Random(0)
    answers, *others = ([" ".join(rng.choices(_WORDS, k=rng.randrange(12))) for _ in range(60)] for _ in range(3))
    qids = [str(number) for number in range(60)]
    references = [list(pair) for pair in zip(*others, strict=True)]
    topics = pd.DataFrame({"qid": qids, "query": "?", "answer": others[0], "answers": references})
    given = pd.DataFrame({"qid": qids, "n_tokens": 8, "answer": answers})
    return [
        (name, getattr(measure, "version", 1), measure.measure(topics, None, None, given, None))  # type: ignore[arg-type]
        for name, measure in measures.items()
    ]


def estimated(folder: Path) -> list[Made]:
    """The metrics of the estimates from verdicts on all of 60 topics, and on a sample of 30."""
    dice = np.random.default_rng(0)
    score = np.round(dice.random(60), 3)
    label = np.where(dice.random(60) < score, 5, dice.choice([1, 2, 3, 4], 60)).astype(float)
    label[[3, 40]] = np.nan
    table = pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(60)],
            "retriever": "bm25",
            "n_tokens": 100,
            "ir_score": score,
            "label": pd.array(label, dtype="Float64").astype("Int64"),
            "judge_status": np.where(np.isnan(label), "unreadable", "ok"),
            "unanswerable": False,
        }
    )
    whole = estimates.findings(Store(folder), table, "whole", 200, 0, {}, {})
    metrics = pd.DataFrame(sorted(whole.metrics.items()), columns=["metric", "value"])
    return [("estimates", estimates.VERSION, metrics)]
