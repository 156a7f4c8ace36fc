"""eRAG: the relevance of a retrieved text is the quality of the LLM's answer from it alone.

Source: Salemi & Zamani, Evaluating Retrieval Quality in Retrieval-Augmented Generation, SIGIR 2024.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT, NO_REFERENCE
from ragauge.contract.checks import require, require_choice, require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.measures import AnswerMeasureInfo, VariesContexts
from ragauge.contract.topics import is_unanswerable, references
from ragauge.measures.answers import Contains, ExactMatch, TokenF1
from ragauge.measures.rankings import metric_of

SECTION = "Documents by their use"
JUDGE = "judge"  # the label is whether the judge gives class 5
RIGHT = 5
FAILED = "failed"  # an answer from one text alone, or its verdict, is missing
_BY: Mapping[str, Callable[[], Any]] = {"contains": Contains, "em": ExactMatch, "f1": TokenF1}
_SCALE = 1000  # ir-measures takes whole numbers as relevance
_NAME = re.compile(r"(P|R|RR|AP|nDCG|Success)(?:@([1-9][0-9]*))?")
_ALWAYS_CUT = ("P", "R", "Success")


@dataclass(frozen=True)
class ERag(VariesContexts):
    """Measures of the ranking, with relevance labels from the LLM's answers to each text alone.

    depth: how many of the ranked texts the LLM gets, each alone; one longer than n_tokens is cut there.
    by: the worth of the answer: `contains`, `em`, `f1` against the reference answers, or `judge`, which is 1 for class
        5. That is the text's label, in [0, 1].
    relevant: the label from which a text is relevant to measures that know only relevant or not; nDCG takes
        the label itself as gain.
    measures: P@k, R@k, Success@k, RR, AP and nDCG, the last three with @k or over all texts up to depth. All
        that is not among these texts counts as unknown: R, AP and nDCG are relative to the list itself.

    A topic without hits scores 0. One with a text whose answer failed has no value.
    """

    component = "erag"
    varies = "ranking"
    calls = "erag_"

    depth: int = 10
    by: str = "contains"
    relevant: float = 0.5
    measures: Sequence[str] = ("P@1", "P@5", "nDCG@10", "RR")

    def __post_init__(self) -> None:
        require_count("answers.erag.depth", self.depth)
        require_choice("answers.erag.by", self.by, (*_BY, JUDGE))
        require_number("answers.erag.relevant", self.relevant, 1 / _SCALE, 1)
        listed = isinstance(self.measures, (list, tuple)) and bool(self.measures)
        require("answers.erag.measures", self.measures, listed, "lists of names such as [P@5, nDCG@10, RR]")
        for name in self.measures:
            self._check(name)
        if len(set(self.measures)) < len(self.measures):
            raise ConfigError(f"answers.erag.measures={list(self.measures)!r}: a name stands there twice")

    @property
    def needs(self) -> frozenset[str]:
        """References, an llm that answers from the given context, and the judge if it labels."""
        return frozenset({"references", "contexts", "generator"} | ({JUDGE} if self.judged else set()))

    @property
    def judged(self) -> bool:
        """Whether the judge labels the answers."""
        return self.by == JUDGE

    @cached_property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """Labels of the values, one per measure."""
        return tuple(
            AnswerMeasureInfo(f"erag_{metric_of(name)}", f"eRAG {name}", section=SECTION, of="ranking")
            for name in self.measures
        )

    def vary(self, topics: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools) -> pd.DataFrame:
        """The first `depth` texts of every topic, each as a context: [qid, n_tokens, variant, text].

        `variant` is the text's rank; n_tokens the tokens that it has, so that equal texts are equal contexts
        whatever the budget. Topics without a reference answer are left out, as are texts without any text.
        """
        known = {qid for qid, answers in references_of(topics).items() if answers}
        first = passages[(passages["rank"] < self.depth) & passages["qid"].isin(known)]
        distinct = list(dict.fromkeys(first["text"]))
        cut: dict[str, tuple[str, int]] = {}
        for text, tokens in zip(distinct, tools.tokenizer.offsets(distinct), strict=True):
            n = min(n_tokens, len(tokens))
            whole = n == len(tokens)
            cut[text] = (text if whole else text[: int(tokens[n - 1, 1])] if n else "", n)
        found = pd.DataFrame(
            {
                "qid": first["qid"].to_numpy(),
                "n_tokens": np.array([cut[text][1] for text in first["text"]], dtype=np.int64),
                "variant": first["rank"].to_numpy(dtype=np.int64),
                "text": pd.array([cut[text][0] for text in first["text"]], dtype="str"),
            }
        )
        return found[found["text"].str.strip() != ""].reset_index(drop=True)

    def measure_varied(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        varied: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; the first measure's `detail` holds the labels by rank."""
        labels = varied[["qid", "variant"]].assign(label=self.labels(topics, evidence, varied, tools))
        values = self.ranked(labels)
        by_topic = {
            str(qid): {str(v): None if pd.isna(label) else round(float(label), 4) for v, label in rows}
            for qid, rows in (
                (qid, zip(rows["variant"], rows["label"], strict=True))
                for qid, rows in labels.sort_values("variant").groupby("qid", sort=False)
            )
        }
        failed = set(labels.loc[labels["label"].isna(), "qid"])
        without = {qid for qid, texts in references_of(topics).items() if not texts}
        qids = answers["qid"].tolist()
        budgets = answers["n_tokens"].tolist()
        status = [
            NO_REFERENCE if qid in without else NO_CONTEXT if n == 0 else FAILED if qid in failed else "ok"
            for qid, n in zip(qids, budgets, strict=True)
        ]
        parts = []
        for number, (info, name) in enumerate(zip(self.infos, self.measures, strict=True)):
            own = values.get(name, {})
            found = [own.get(q, 0.0) if s == "ok" else None for q, s in zip(qids, status, strict=True)]
            detail = [json.dumps({"labels": by_topic[q]}) if q in by_topic else None for q in qids]
            parts.append(
                pd.DataFrame(
                    {
                        "qid": pd.array(qids, dtype="str"),
                        "n_tokens": np.array(budgets, dtype=np.int64),
                        "measure": info.name,
                        "value": pd.array(found, dtype="Float64").to_numpy(dtype=float, na_value=np.nan),
                        "status": status,
                        "detail": pd.array(detail if number == 0 else [None] * len(qids), dtype="str"),
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)

    def labels(self, topics: pd.DataFrame, evidence: pd.DataFrame, varied: pd.DataFrame, tools: Tools) -> np.ndarray:
        """float64 by row of `varied`: the value of its answer, NaN without one."""
        if self.judged:
            return varied["label"].eq(RIGHT).astype(float).mask(varied["label"].isna()).to_numpy(dtype=float)
        measure, name = _BY[self.by](), self.by
        found = pd.Series(np.nan, index=varied.index)
        for _, rows in varied.groupby("variant"):  # a topic stands once in each
            values = measure.measure(topics, evidence, rows, rows[["qid", "n_tokens", "answer", "status"]], tools)
            own = values[values["measure"] == name].set_index("qid")["value"]
            found[rows.index] = rows["qid"].map(own).to_numpy(dtype=float)
        return found.to_numpy()

    def ranked(self, labels: pd.DataFrame) -> dict[str, dict[str, float]]:
        """{measure: {qid: value}} of the topics whose labels [qid, variant, label] are all known."""
        import ir_measures

        known = labels[~labels["qid"].isin(labels.loc[labels["label"].isna(), "qid"])]
        if known.empty:
            return {}
        keys = {
            "query_id": known["qid"].to_numpy(dtype=object),
            "doc_id": known["variant"].astype(str).to_numpy(dtype=object),
        }
        relevance = (known["label"] * _SCALE).round().astype(int).to_numpy()
        truth = pd.DataFrame({**keys, "relevance": relevance})
        run = pd.DataFrame({**keys, "score": -known["variant"].to_numpy(dtype=float)})
        parsed = {self._parsed(name): name for name in self.measures}
        found: dict[str, dict[str, float]] = {name: {} for name in self.measures}
        for row in ir_measures.iter_calc(list(parsed), truth, run):
            found[parsed[row.measure]][row.query_id] = float(row.value)
        return found

    def _parsed(self, name: str) -> Any:
        import ir_measures

        family, _, cut = name.partition("@")
        measure = ir_measures.parse_measure(family)
        if family != "nDCG":
            measure = measure(rel=round(self.relevant * _SCALE))
        return measure @ int(cut) if cut else measure

    def _check(self, name: object) -> None:
        found = _NAME.fullmatch(name) if isinstance(name, str) else None
        cut = int(found[2]) if found and found[2] else None
        if found is None or (cut is None and found[1] in _ALWAYS_CUT):
            raise ConfigError(
                f"answers.erag.measures: {name!r}: allowed are P@k, R@k, Success@k, and RR, AP, nDCG with or without @k"
            )
        if cut is not None and cut > self.depth:
            raise ConfigError(
                f"answers.erag.measures: {name!r} looks at {cut} texts, and "
                f"answers.erag.depth={self.depth} of them are labelled"
            )


def references_of(topics: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """The reference answers by qid; omits unanswerable topics, which no text can answer."""
    marked = set(topics["qid"][is_unanswerable(topics)])
    return {qid: () if qid in marked else texts for qid, texts in references(topics).items()}
