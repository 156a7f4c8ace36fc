"""UDCG: passages that help to answer raise a ranking's value, misleading ones lower it.

Source: Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, EACL 2026 (arXiv 2510.21440), in the form
without fitted weights that the authors publish.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT, NO_EVIDENCE, NO_REFERENCE
from ragauge.contract.checks import require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.measures import AnswerMeasureInfo, VariesContexts
from ragauge.plugins.documents.erag import FAILED, SECTION, ERag, references_of
from ragauge.plugins.documents.use import holds_evidence

LACK = 1  # the judge's class of an answer that abstains


@dataclass(frozen=True)
class Udcg(VariesContexts):
    """The logistic function of the mean utility of the first `depth` texts of a ranking, in [0, 1].

    A text's utility is 1 - P(the llm abstains from an answer, given the text alone) where it holds evidence.
    Where it holds none, it is minus `distraction` times this. A stand-in takes the place of P. It is 1 where the judge
    gives the answer class 1, lack of information, and else 0. Chat models do not tell P.
    distracting_passages: the share of the texts that hold no evidence and from which the llm answers all the same.
    depth: how many of the ranked texts the llm gets, each alone, as eRAG shows them. distraction: the weight of a text
        that misleads beside one that helps; the authors' 1/3.

    A topic without hits has the value of one whose texts all have the utility 0, which is 0.5. One with a text whose
    answer or verdict failed has no value, nor has one without evidence or without a reference answer.
    """

    component = "udcg"
    varies = "ranking"
    calls = "udcg_"
    judged = True
    needs = frozenset({"references", "evidence", "contexts", "generator", "judge"})

    depth: int = 10
    distraction: float = 1 / 3

    def __post_init__(self) -> None:
        require_count("answers.udcg.depth", self.depth)
        require_number("answers.udcg.distraction", self.distraction, 0, 1)

    @cached_property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """Labels of the values."""
        label = f"UDCG@{self.depth}, abstention by the judge"
        return (
            AnswerMeasureInfo("udcg", label, "higher", "ratio", SECTION, "ranking"),
            AnswerMeasureInfo(
                "distracting_passages", f"distracting in {self.depth}", "lower", "share", SECTION, "ranking", False
            ),
        )

    def vary(self, topics: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools) -> pd.DataFrame:
        """The first `depth` texts of every topic, each as a context, like `ERag.vary`."""
        return ERag(depth=self.depth, measures=("RR",)).vary(topics, passages, n_tokens, tools)

    def measure_varied(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        varied: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; the first info's `detail` holds the utilities by rank."""
        shown = varied[["qid", "variant", "label"]].rename(columns={"variant": "rank"})
        shown = shown.merge(passages[["qid", "rank", "docno", "text"]], on=["qid", "rank"], validate="one_to_one")
        shown = shown.sort_values(["qid", "rank"], kind="stable").reset_index(drop=True)
        holds = holds_evidence(shown.rename(columns={"text": "seen"}), evidence, topics)
        answered = (~shown["label"].eq(LACK)).astype(float).mask(shown["label"].isna()).to_numpy(dtype=float)
        shown = shown.assign(
            utility=np.where(holds.fillna(False), answered, -self.distraction * answered),
            distracts=np.where(holds.fillna(False), 0.0, answered),
        )
        own = {str(qid): rows for qid, rows in shown.groupby("qid", sort=False)}
        known = set(evidence["qid"])
        without = {qid for qid, texts in references_of(topics).items() if not texts}

        def status(qid: str, n_tokens: int) -> str:
            if qid in without:
                return NO_REFERENCE
            if qid not in known:
                return NO_EVIDENCE
            if n_tokens == 0:
                return NO_CONTEXT
            return FAILED if qid in own and own[qid]["utility"].isna().any() else "ok"

        told = [status(*pair) for pair in zip(answers["qid"], answers["n_tokens"], strict=True)]
        parts = []
        for number, info in enumerate(self.infos):
            values = [
                np.nan if said != "ok" else self._value(number, own.get(qid))
                for qid, said in zip(answers["qid"], told, strict=True)
            ]
            detail = [None if number or qid not in own else _shown(own[qid]) for qid in answers["qid"]]
            parts.append(
                answers[["qid", "n_tokens"]].assign(
                    measure=info.name,
                    value=np.array(values, dtype=float),
                    status=pd.array(told, dtype="str"),
                    detail=pd.array(detail, dtype="str"),
                )
            )
        return pd.concat(parts, ignore_index=True).astype({"measure": "str"})

    def _value(self, number: int, rows: pd.DataFrame | None) -> float:
        if number:
            return 0.0 if rows is None else float(rows["distracts"].mean())
        return udcg([] if rows is None else rows["utility"].tolist())


def udcg(utilities: Sequence[float]) -> float:
    """1 / (1 + exp(-m)) for the mean m of the utilities of a topic's texts; 0.5 without texts."""
    return float(1 / (1 + np.exp(-np.mean(utilities)))) if len(utilities) else 0.5


def _shown(rows: pd.DataFrame) -> str:
    known = zip(rows["rank"], rows["utility"], strict=True)
    return json.dumps({"utilities": {str(rank): None if np.isnan(u) else round(float(u), 4) for rank, u in known}})
