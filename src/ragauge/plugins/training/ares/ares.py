"""Answer measure `ares`: probabilities by judges trained with `trainer=judge` (ARES)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_CONTEXT
from ragauge.contract.checks import require, require_choice, require_text
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import named, runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresPassages
from ragauge.contract.topics import (
    ANSWER_FAITHFULNESS,
    ANSWER_RELEVANCE,
    CONTEXT_RELEVANCE,
    QUESTIONS,
    measured_as,
)
from ragauge.plugins.training.ares.interactions import Triple
from ragauge.plugins.training.ares.network import described, load_judge
from ragauge.retrieval.pretrained import model_digest
from ragauge.store.vectors import PAIR_SCORES, VectorCache, vectors_name

_KEY = "answers.ares.model"
_SEPARATOR = "\x1f"  # between question and answer in a key of the cache
_INFOS = {
    CONTEXT_RELEVANCE: AnswerMeasureInfo(
        measured_as(CONTEXT_RELEVANCE), "ARES: context relevant", unit="share", section="Judges", of="context"
    ),
    ANSWER_FAITHFULNESS: AnswerMeasureInfo(
        measured_as(ANSWER_FAITHFULNESS), "ARES: answer faithful", unit="share", section="Judges"
    ),
    ANSWER_RELEVANCE: AnswerMeasureInfo(
        measured_as(ANSWER_RELEVANCE), "ARES: answer relevant", unit="share", section="Judges"
    ),
}


class _Asked(NamedTuple):
    """A topic's question, its answer (None for none), and the part of its passages that the LLM was given."""

    question: str
    answer: str | None
    passages: tuple[str, ...]


@dataclass(frozen=True)
class Ares(MeasuresPassages):
    """Probabilities that the context is relevant, the answer faithful to it, and the answer relevant.

    A trained judge reads each passage of the context by itself. A context is as relevant, and an answer as faithful, as
    the passage of the highest probability (passages=max) or the mean of all (mean). Text beyond the budget is not read.
    Answer relevance looks at no passage. Each is between 0 and 1. The mean over topics is the judge alone, with the
    judge's errors. With `human_labels` the metrics `<name>_ppi` are estimates of people's yes (ragauge.estimate.human).
    model: the folder of a trained judge, or the URI of an MLflow model (models:/…, runs:/…). questions: which
    of the three; all that the model was trained for where empty. folder: where the files of `model` lie,
    where that is no path; found by ragauge.
    Source: ARES (Saad-Falcon et al. 2023, arXiv:2311.09476).
    """

    component = "ares"
    version = 2

    model: str
    questions: Sequence[str] = ()
    passages: Literal["max", "mean"] = "max"
    device: str = "cpu"
    folder: str | None = runtime(None)

    def __post_init__(self) -> None:
        require_text(_KEY, self.model, "the folder of a trained judge, and an MLflow model's URI")
        require_choice("answers.ares.passages", self.passages, ("max", "mean"))
        require_text("answers.ares.device", self.device, "devices of torch: cpu, cuda, cuda:1, mps")
        asked = self.questions
        ok = isinstance(asked, (list, tuple)) and all(one in QUESTIONS for one in asked)
        ok = ok and len(set(asked)) == len(asked)
        allowed = f"lists of {', '.join(QUESTIONS)}, each once; [] is all of the model's"
        require("answers.ares.questions", asked, ok, allowed)
        if not self._folder.is_dir():
            raise ConfigError(
                f"{_KEY}={self.model}: no such folder; allowed are the folder of a judge that trainer=judge "
                "made, and an MLflow model's URI"
            )
        trained = tuple(described(self._folder, _KEY)["questions"])
        missing = [one for one in asked if one not in trained]
        if missing:
            raise ConfigError(
                f"answers.ares.questions: {self.model} was not trained for {missing[0]}; it was for "
                f"{', '.join(trained)}"
            )
        chosen = tuple(one for one in QUESTIONS if one in (asked or trained))
        object.__setattr__(self, "questions", chosen)

    @property
    def _folder(self) -> Path:
        return Path(self.folder or self.model).expanduser().resolve()

    def identity(self) -> dict[str, Any]:
        """The digest of the model's files and of everything else that its values depend on."""
        return {
            **named(self),
            "judge": self._judge(),
            "questions": list(self.questions),
            "passages": self.passages,
        }

    def _judge(self) -> Mapping[str, Any]:
        kind = self.device.partition(":")[0]
        return {"digest": model_digest(self._folder), "device": kind, "version": self.version}

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """One info for each of `questions`."""
        return tuple(_INFOS[one] for one in self.questions)

    @property
    def info(self) -> AnswerMeasureInfo:
        """The first of `infos`."""
        return self.infos[0]

    @property
    def needs(self) -> frozenset[str]:
        """Answers and contexts, if its questions are about them."""
        of = {CONTEXT_RELEVANCE: {"contexts"}, ANSWER_FAITHFULNESS: {"contexts", "answers"}}
        return frozenset().union(*(of.get(one, {"answers"}) for one in self.questions))

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; missing without an answer or a passage."""
        asked = _asked(topics, passages, answers)
        frames = [self._values(question, asked, answers, tools) for question in self.questions]
        return pd.concat(frames, ignore_index=True)

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values` for contexts of one passage each."""
        columns = {"qid": contexts["qid"], "position": 0, "text": contexts["text"]}
        passages = pd.DataFrame({**columns, "chars": contexts["text"].str.len()})
        return self.measure_passages(topics, evidence, passages, answers, tools)

    def _values(self, question: str, asked: Sequence[_Asked], answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        of_passages = question != ANSWER_RELEVANCE
        triples: list[Triple] = []
        spans, statuses = [], []
        for one in asked:
            status = "ok"
            if question != CONTEXT_RELEVANCE and one.answer is None:
                status = NO_ANSWER
            elif of_passages and not one.passages:
                status = NO_CONTEXT
            said = "" if question == CONTEXT_RELEVANCE else one.answer or ""
            read = one.passages if of_passages else ("",)
            own = [Triple(one.question, text, said) for text in read] if status == "ok" else []
            spans.append((len(triples), len(triples) + len(own)))
            statuses.append(status)
            triples += own
        known = self._probabilities(question, triples, tools)
        together = np.max if self.passages == "max" else np.mean
        values = [float(together(known[a:b])) if b > a else None for a, b in spans]
        return answers[["qid", "n_tokens"]].assign(
            measure=measured_as(question),
            value=pd.Series(values, index=answers.index, dtype="float64"),
            status=pd.Series(statuses, index=answers.index, dtype="str"),
        )

    def _probabilities(self, question: str, triples: Sequence[Triple], tools: Tools) -> np.ndarray:
        """float64 [triples]; each distinct triple is read once per store."""
        keys = [(f"{t.question}{_SEPARATOR}{t.answer}", t.passage) for t in triples]
        distinct = dict(zip(keys, triples, strict=True))
        if not distinct:
            return np.zeros(0)

        def read(missing: list[tuple[str, str]]) -> np.ndarray:
            judge = load_judge(self._folder, self.device, _KEY)
            found = judge.probabilities(question, [distinct[key] for key in missing])
            return found.astype(np.float32)[:, None]

        name = vectors_name({**self._judge(), "question": question})
        cache = VectorCache(tools.store.root, name, f"judging {question.replace('_', ' ')}", PAIR_SCORES)
        order = list(distinct)
        found = cache.get(order, read)[:, 0].astype(float)
        row = {key: i for i, key in enumerate(order)}
        return np.asarray(found[[row[key] for key in keys]])


def _asked(topics: pd.DataFrame, passages: pd.DataFrame, answers: pd.DataFrame) -> list[_Asked]:
    """The judged texts, for every row of `answers`."""
    questions = dict(zip(topics["qid"].tolist(), topics["query"].tolist(), strict=True))
    seen: dict[str, list[str]] = {}
    columns = (passages[name].tolist() for name in ("qid", "text", "chars"))
    for qid, text, chars in zip(*columns, strict=True):
        if text[: int(chars)].strip():
            seen.setdefault(qid, []).append(text[: int(chars)])
    return [
        _Asked(questions[qid], answer if isinstance(answer, str) else None, tuple(seen.get(qid, ())))
        for qid, answer in zip(answers["qid"].tolist(), answers["answer"].tolist(), strict=True)
    ]
