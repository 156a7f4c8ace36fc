"""`llm=recorded`: answers that another system gave, from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.answering.frame import answer_frame, queries_of
from ragauge.contract.answering import NOT_RECORDED, Generator
from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.frames import SCHEMAS
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.outcomes import RESERVED
from ragauge.contract.replies import Reply
from ragauge.contract.usage import Usage
from ragauge.datasets import BadRow, recordings
from ragauge.datasets.recordings import Recorded
from ragauge.llms.replies import answer_alone

NO_ANSWER = "the file has no answer"


@option("llm/recorded")
class RecordedAnswers(Generator):
    """The answers of a file, a row per question: {qid, answer}, under RAGAS's and DeepEval's names, too.

    Optional are error, prompt_tokens, completion_tokens, cost_usd and seconds: what the answer took when it
    was given. No LLM is asked, so none of it is spent now. A null answer is a missing one; "" is one that says
    nothing, which is right where a question cannot be answered (SQuAD 2). Thoughts at the beginning of an answer
    (`<think>`) are no part of it. Other keys with a text or a
    number become columns of the answers, such as the rounds of an iterative system.

    system: the system whose rows are read, in a file of several. answer_number: which of several answers to a question,
    by the file's key `sample` (0 without one). on_missing: `raise`, or `missing`: questions that are not in the file
    have a missing answer.
    """

    component = "recorded"
    version = 4
    kind = "recorded"

    path: str | Path | None = runtime(None)
    system: str | None = None
    answer_number: int = CONF
    on_missing: str = "raise"

    def __post_init__(self) -> None:
        require_count("llm.answer_number", self.answer_number, 0)
        recordings.check_picking("llm", self.system, self.on_missing)

    def files(self) -> Mapping[str, Path]:
        """The file; ConfigError if it is not there."""
        return {"answers": recordings.recorded_file("llm.path", self.path)}

    def repeated(self, number: int) -> RecordedAnswers:
        """The file's answers whose `sample` is greater by `number`."""
        return replace(self, answer_number=self.answer_number + number)

    def rows(self, file: Path) -> list[Recorded]:
        """The system's rows of the file; a subclass may read another format."""
        return recordings.read_rows(file, self.system, "llm.system")

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`; status ok or missing, all rows cached and without calls.

        DataError names file and line of a row that cannot be read.
        """
        queries_of(topics, contexts)  # no context of an unknown topic
        if contexts.empty:
            return answer_frame(contexts, [])
        file = self.files()["answers"]
        rows = self.rows(file)
        if not any("answer" in row.values for row in rows):
            raise DataError(f"{file}: no row has an answer; its key is one of {', '.join(_KEYS)}")
        given = [(row.qid, _Given.of(row)) for row in rows]
        samples = sorted({one.sample for _, one in given})
        number = self.answer_number
        if number not in samples:
            raise DataError(f"{file}: no answer has llm.answer_number={number}; it has samples {samples[:10]}")
        own = [(qid, one) for qid, one in given if one.sample == number]
        qids = contexts["qid"].tolist()
        found = recordings.by_topic(file, own, list(dict.fromkeys(qids)), "answer", self.on_missing)
        nothing = _Given(Reply(None, f"{NOT_RECORDED} {file.name}", cached=True))
        of_rows = [found.get(qid, nothing) for qid in qids]
        frame = answer_frame(contexts, [one.reply for one in of_rows], may_be_empty=True)
        return frame.assign(**_columns([one.extra for one in of_rows]))


_KEYS = recordings.NAMES["answer"]


@dataclass(frozen=True)
class _Given:
    """A recorded answer."""

    reply: Reply
    sample: int = 0
    extra: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, row: Recorded) -> _Given:
        try:
            text = row.text("answer")
            error = None if text is not None else row.text("error") or NO_ANSWER
            tokens = row.count("prompt_tokens"), row.count("completion_tokens")
            usage = Usage(*tokens, row.number("cost_usd"), row.number("seconds"))
            reply = Reply(text, error, usage, cached=True)
            return cls(answer_alone(reply), row.count("sample"), row.extra)
        except BadRow as bad:
            raise DataError(f"{row.place}: {bad}") from None


def _columns(extra: Sequence[Mapping[str, Any] | None]) -> dict[str, pd.Series]:
    """A column per further key: numeric if all its values are numbers, else text."""
    names = dict.fromkeys(name for own in extra for name in own or ())
    schema = SCHEMAS["answers"]
    taken = {*RESERVED, *schema.columns, *schema.optional}
    found = {}
    for name in names:
        values = [(own or {}).get(name) for own in extra]
        given = [value for value in values if value is not None]
        if name in taken:
            continue
        if all(type(value) in (int, float) and np.isfinite(value) for value in given):
            found[name] = pd.Series(values, dtype="float64")
        else:
            found[name] = pd.Series([None if value is None else str(value) for value in values], dtype="str")
    return found
