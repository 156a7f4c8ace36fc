"""Answers whose classes are known, by which a judge is tried before it is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files

import pandas as pd

from ragauge.contract.answering import Judge
from ragauge.contract.component import Tools
from ragauge.llms.chat import ChatLLM
from ragauge.llms.settings import NOW

KEYS = ["qid", "n_tokens"]


@cache
def _questions() -> list[dict[str, object]]:
    text = files("ragauge.answering.judges").joinpath("probes.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


class Probes:
    """Questions with two answers each, written by hand: topics, evidence, and the `answers` with their `label`.

    Only answers of the judge's own classes are among them. `n_tokens` is the number of an answer to its question.
    """

    def __init__(self, judge: Judge) -> None:
        asked = pd.DataFrame(_questions()).assign(qid=lambda rows: [f"probe {i}" for i in range(1, len(rows) + 1)])
        self.topics = asked.rename(columns={"question": "query", "reference": "answer"})[["qid", "query", "answer"]]
        parts = asked[["qid", "evidence"]].explode("evidence").rename(columns={"evidence": "text"})
        self.evidence = parts.assign(part=parts.groupby("qid").cumcount(), docno=None).reset_index(drop=True)
        rows = asked[["qid", "answers"]].explode("answers", ignore_index=True)
        rows = rows[["qid"]].join(pd.DataFrame(rows["answers"].tolist()))
        rows = rows.assign(n_tokens=rows.groupby("qid").cumcount(), status="ok")
        self.answers = rows[rows["label"].isin(judge.classes)].reset_index(drop=True)

    def judged(self, judge: Judge, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts` of the judge on the answers, with the known classes as `known`.

        They are asked for now, where a batch of the provider would take hours.
        """
        judge = replace(judge, submit=NOW) if isinstance(judge, ChatLLM) else judge
        found = judge.judge(self.topics, self.evidence, self.answers.drop(columns="label"), tools)
        known = self.answers[[*KEYS, "label"]].rename(columns={"label": "known"})
        return found.merge(known, on=KEYS, validate="one_to_one")

    def needs(self, judge: Judge, tools: Tools) -> pd.DataFrame | None:
        """The requests of `judged`, as `Judge.needs` returns them."""
        candidates = self.answers[["qid", "answer"]].assign(candidate=self.answers["n_tokens"].astype(str))
        return judge.needs(self.topics, self.evidence, candidates, tools)
