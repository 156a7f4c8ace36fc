"""`context_precision`: whether the useful passages of a context precede the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT, NO_REFERENCE
from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresPassages
from ragauge.contract.replies import Structured
from ragauge.contract.topics import is_unanswerable, references
from ragauge.llms.json_replies import OK, Found, ask_each, json_of, quoted, truth_of
from ragauge.llms.prompts import fill
from ragauge.llms.structured import TEXT, TRUTH, fields
from ragauge.plugins.llm_measures import read_prompt
from ragauge.plugins.llm_measures.claims import one_line, questions_of
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame


class Useful(NamedTuple):
    """Whether a passage is useful, and the model's reason."""

    useful: bool
    reason: str | None


_BLANK = Useful(False, None)  # the verdict on a passage without any text, where nobody is asked


@dataclass(frozen=True)
class ContextPrecision(MeasuresPassages):
    """Mean of precision@k over the ranks k of the useful passages of a context; 0 where none is useful.

    A passage is useful if it helped to arrive at a reference answer. One that the budget cut counts as whole,
    so that all retrievers and budgets share the one request per question and passage.
    Source: RAGAS, context precision with reference (Es et al., RAGAS: Automated Evaluation of Retrieval
    Augmented Generation, 2023, and its documentation).
    repeat: the number of topics that are measured once more, to show the measure's own noise. prompt ($question,
    $references, $passage): a text, or the name of a .txt file; null for the shipped one.
    """

    component = "context_precision"
    version = 2
    uses = frozenset({"chat"})
    needs = frozenset({"references", "contexts"})
    infos = (
        AnswerMeasureInfo("context_precision", "context precision", unit="share", section="Contexts", of="context"),
    )

    prompt: str | None = None
    repeat: int = runtime(0)

    def __post_init__(self) -> None:
        require_count("answers.context_precision.repeat", self.repeat, 0)
        read_prompt(self, "prompt", "context_precision.txt", ("question", "references", "passage"))

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; missing if one of a context's passages could not be judged."""
        marked = set(topics["qid"][is_unanswerable(topics)])
        truth = {qid: texts for qid, texts in references(topics).items() if texts and qid not in marked}
        queries = questions_of(topics)
        found = _by_topic(passages)
        pairs = dict.fromkeys(
            (qid, text) for qid in answers["qid"] if qid in truth for _, _, text in found.get(qid, ())
        )
        requests = {(qid, text): self._request(queries[qid], truth[qid], text) for qid, text in pairs if text.strip()}
        readers = dict.fromkeys(requests.values(), Structured(read_useful, _REPLY))
        guesses = dict.fromkeys(readers, _BLANK)
        replies = ask_each(tools.chat, readers, tools.store, self.infos[0].label, guesses=guesses)
        verdicts = dict.fromkeys(pairs, Found(_BLANK, OK))
        verdicts |= {pair: replies[request] for pair, request in requests.items()}

        def measured(qid: str) -> Measured:
            if qid not in truth:
                return Measured(None, NO_REFERENCE)
            own = found.get(qid, [])
            if not own:
                return Measured(None, NO_CONTEXT)
            said = [verdicts[qid, text] for _, _, text in own]
            if (missing := lost(*said)) is not None:
                return missing
            known = [verdict.value for verdict in said if verdict.value is not None]
            shown = [
                {"docno": docno, "rank": rank, **verdict._asdict()}
                for (rank, docno, _), verdict in zip(own, known, strict=True)
            ]
            value = average_precision([verdict.useful for verdict in known])
            return Measured((value,), OK, {"passages": shown})

        return value_frame(answers, self.infos, [measured(qid) for qid in answers["qid"]])

    def _request(self, query: str, truth: Sequence[str], text: str) -> str:
        listed = "\n".join(map(quoted, truth))
        return fill(str(self.prompt), question=query, references=listed, passage=quoted(text))


def _by_topic(passages: pd.DataFrame) -> dict[str, list[tuple[int, str, str]]]:
    """(rank, docno, whole text) of the passages of every topic, by rank."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    columns = (passages[name] for name in ("qid", "rank", "docno", "text"))
    for qid, rank, docno, text in zip(*columns, strict=True):
        found.setdefault(qid, []).append((int(rank), docno, text))
    return {qid: sorted(own) for qid, own in found.items()}


def average_precision(useful: Sequence[bool]) -> float:
    """sum over k of precision@k * useful_k, over the number of useful passages; in [0, 1], 0 without any."""
    n_useful, total = 0, 0.0
    for k, is_useful in enumerate(useful, start=1):
        if is_useful:
            n_useful += 1
            total += n_useful / k
    return total / n_useful if n_useful else 0.0


_REPLY = fields(reason=TEXT, useful=TRUTH)


def read_useful(reply: str) -> Useful | None:
    """The verdict of a reply {"useful": true or false, "reason": ...}; None for anything else."""
    found = json_of(reply)
    useful = truth_of(found.get("useful")) if isinstance(found, dict) else None
    if useful is None:
        return None
    reason = found.get("reason")
    return Useful(useful, one_line(reason) if isinstance(reason, str) else None)
