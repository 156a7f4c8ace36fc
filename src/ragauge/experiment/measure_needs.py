"""Estimates the LLM requests of a job's answer measures by running them on known replies alone.

A measure guesses unknown replies (for claims, the sentences of the answer), so that the requests after them are
counted, too, as estimates.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.component import Embedder, KeepsReplies, Tools
from ragauge.experiment.stages.answering import MeasureAnswers
from ragauge.experiment.stages.stage import Read, Reads
from ragauge.llms.chat_use import RepeatingChat, TellingChat

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

SALT = "measured again"  # tells the requests of measuring once more from the first ones in the ledger
_WORDS_PER_TOKEN = 0.75  # of an English text


def of_measures(
    pipeline: Pipeline,
    answers: pd.DataFrame,
    contexts: pd.DataFrame | None,
    asked_for: bool,
    seed: int,
    again: bool = True,
) -> list[pd.DataFrame]:
    """The requests of every measure with an LLM, one per row, as in `ChatLLM.needs_of`, with `who`.

    answers: as far as they are known; with `asked_for` those that are missing come from an LLM, and stand-ins
    of their length take their places. contexts: None where they are not known. `seed` draws the topics that
    are measured again; without `again` none are. Tokens and cost are missing for a model that cannot say what it would
    need.
    """
    stages = [s for s in pipeline.stages if isinstance(s, MeasureAnswers) and "chat" in s.uses]
    if not stages:
        return []
    token = uuid.uuid4().hex  # no other job has these stand-ins
    expected = pipeline.components.llm.expected_tokens
    stand_in = f"{token} " + "word " * int(expected * _WORDS_PER_TOKEN)
    unknown = answers["answer"].isna() & asked_for
    whole = answers.assign(
        answer=answers["answer"].astype(object).where(~unknown, answers["qid"] + " " + stand_in).astype("str")
    )
    frames = {"answers": whole.assign(status="ok") if "status" not in whole else whole}
    if contexts is None:
        frames |= _unknown_contexts(pipeline, token)
    guessed = bool(unknown.any()) or contexts is None

    def read(read: Read, qids: Sequence[str] | None = None) -> pd.DataFrame:
        frame = frames[read.name] if read.name in frames else pipeline.frame(read.name)
        return frame if qids is None else frame[frame["qid"].isin(qids)].reset_index(drop=True)

    repeated = repeating(pipeline) if again else []
    return [_of_measure(s, pipeline, read, guessed, frames["answers"], seed, s in repeated) for s in stages]


def _of_measure(
    stage: MeasureAnswers,
    pipeline: Pipeline,
    read: Any,
    guessed: bool,
    answers: pd.DataFrame,
    seed: int,
    repeated: bool,
) -> pd.DataFrame:
    chat = pipeline.chat_of(stage)
    model = None if chat is None else chat.chat
    if not isinstance(model, KeepsReplies):
        return untold(stage.asks_as, len(answers))
    tools = replace(pipeline.tools, embedder=_NoVectors())
    telling = TellingChat(model, guessed)

    def reads_of(qids: Sequence[str] | None = None) -> Reads:
        return Reads(stage.reads, partial(read, qids=qids), lambda folder: pipeline.folder_of(folder.name))

    measured(stage, reads_of(), tools, telling)
    asked = telling.needs
    if not guessed and pipeline.store.find(pipeline.key_of(stage, answers=answers)) is not None:
        asked = asked.assign(known=True)
    if repeated:
        qids = drawn(answers, stage.component, seed)
        again = TellingChat(model, guessed)
        measured(stage, reads_of(qids), tools, RepeatingChat(again, SALT))
        asked = pd.concat([asked, again.needs], ignore_index=True)
    return asked.assign(who=stage.asks_as) if len(asked) else untold(stage.asks_as, 0)


def repeating(pipeline: Pipeline) -> list[MeasureAnswers]:
    """The measures with an LLM that are to be repeated."""
    measures = [stage for stage in pipeline.stages if isinstance(stage, MeasureAnswers)]
    return [s for s in measures if "chat" in s.uses and s.component.repeat]


def drawn(answers: pd.DataFrame, measure: Any, seed: int) -> list[str]:
    """The qids of a repeated measure, drawn by the seed from the answered topics."""
    able = np.sort(answers.loc[answers["answer"].notna(), "qid"].unique().astype(object))
    chosen = np.random.default_rng(seed).choice(able, min(measure.repeat, len(able)), replace=False)
    return sorted(map(str, chosen))


def measured(stage: MeasureAnswers, reads: Reads, tools: Tools, chat: Any) -> pd.DataFrame:
    """Frame `answer_values` of the reads, by the given chat model, not stored."""
    limited = replace(tools, chat=chat).limited_to(stage.uses, type(stage.component).__name__)
    made = stage.make(reads, limited)["answer_values"]
    assert isinstance(made, pd.DataFrame)
    return made


def untold(who: str, n: int) -> pd.DataFrame:
    """n requests of a component without estimates: tokens and cost are missing."""
    keys = [uuid.uuid4().hex for _ in range(n)]
    missing = {"prompt_tokens": float("nan"), "completion_tokens": float("nan"), "cost_usd": float("nan")}
    return pd.DataFrame({"key": keys, "known": False, "exact": False, **missing, "who": who})


def _unknown_contexts(pipeline: Pipeline, token: str) -> dict[str, pd.DataFrame]:
    """Stand-in contexts as long as the budget, of a single passage."""
    qids, n = pipeline.frame("topics")["qid"], pipeline.n_tokens
    text = (qids + f" {token} " + "word " * n).astype("str")
    passages = pd.DataFrame(
        {
            "qid": qids, "n_tokens": n, "position": 0, "rank": 0, "docno": "?", "text": text,
            "chars": text.str.len() if n else 0,
        }
    )  # fmt: skip
    contexts = pd.DataFrame({"qid": qids, "n_tokens": n, "text": text if n else ""})
    longest = passages.assign(longest=passages["chars"])
    return {"used_passages": passages, "longest_passages": longest, "contexts": contexts}


class _NoVectors(Embedder):
    """An embedder for measurements whose values are ignored."""

    def embed(self, texts: Sequence[str], role: str = "passage", scratch: Any = None) -> np.ndarray:
        return np.zeros((len(texts), 1), dtype=np.float32)
