"""A topic of a job on MLflow's pages: its steps, its expectations, and the feedback on its answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import NOT_SAMPLED, besides_rankings
from ragauge.contract.errors import DataError
from ragauge.contract.frames import JUDGE_CLASSES, rows_where
from ragauge.contract.jobs import Job
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.record import JobRecord
from ragauge.contract.topics import CONVERSATION, references
from ragauge.contract.usage import OPTIONAL, TOKENS
from ragauge.contract.usage import Usage as Tokens
from ragauge.estimate.outcomes import LACK, RIGHT
from ragauge.llms.prices import Price
from ragauge.track import CLASS

_PART_CHARS = 160  # of a missed part of the evidence in a rationale
FRAMES = ("topics", "evidence", "layouts", "prefixes", "part_scores", "answers", "verdicts")  # what a page is made of


@dataclass(frozen=True)
class Usage:
    """The tokens, US dollars and seconds of a call; None if unknown."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None


@dataclass(frozen=True)
class Feedback:
    """One value on an answer, its rationale, and the judge's call behind it."""

    value: bool | int | float | str
    rationale: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True)
class TopicTrace:
    """One topic of a job.

    chunks: docno and text, in the order of the context. model: that of the LLM, None where none was asked.
    expectations, feedback: by name. trace_id: that of the trace which was measured, None where ragauge writes one.
    conversation: the one that it is a turn of.
    """

    qid: str
    query: str
    chunks: Sequence[tuple[str, str]]
    context: str
    answer: str | None
    verdict: Mapping[str, Any]
    scores: Mapping[str, float]
    error: str | None = None
    model: str | None = None
    price: Mapping[str, float] | None = None
    usage: Usage = Usage()
    expectations: Mapping[str, Any] = field(default_factory=dict)
    feedback: Mapping[str, Feedback] = field(default_factory=dict)
    trace_id: str | None = None
    conversation: str | None = None

    @property
    def cost(self) -> dict[str, float]:
        """MLflow's `mlflow.llm.cost` in US dollars: the total, and input and output cost if token prices are known."""
        total = self.usage.cost_usd
        if not total:
            return {}
        price = Price.of(self.price, "")
        if price is None:
            return {"total_cost": total}
        told = {name: getattr(self.usage, name) for name in TOKENS}
        whole, prompt = (price.cost(Tokens(**one)) for one in (told, {**told, "completion_tokens": 0}))
        share = prompt / whole if whole else 0.0
        return {"input_cost": total * share, "output_cost": total * (1 - share), "total_cost": total}


@dataclass(frozen=True)
class Answered:
    """A finished job, as far as its page shows it.

    frame: the rows of these qids of a frame of `FRAMES`. model, price: of the LLM, None where they are not known.
    """

    outcomes: pd.DataFrame
    n_tokens: int
    measures: Sequence[AnswerMeasureInfo]
    frame: Callable[[str, Collection[str]], pd.DataFrame]
    model: str | None = None
    price: Mapping[str, float] | None = None

    @classmethod
    def of(cls, job: Job) -> Answered:
        """Builds it from a job under measurement."""
        llm = job.settings.llm
        model, price = (llm.get("chat") or {}).get("model"), llm.get("price")
        price = dict(price) if isinstance(price, Mapping) else None
        return cls(job.outcomes, job.n_tokens, job.answer_measures, partial(_of_job, job), model, price)

    @classmethod
    def stored(
        cls, record: JobRecord, page: Mapping[str, Any], outcomes: pd.DataFrame,
        measures: Sequence[AnswerMeasureInfo],
    ) -> Answered:  # fmt: skip
        """Builds it from the job's record, with its entry `PAGE` and its outcomes; reads the rest from its store."""
        frame = partial(_of_store, Path(record.store), page["frames"])
        return cls(outcomes, record.n_tokens, measures, frame, page["model"], page["price"])


def _of_job(job: Job, name: str, qids: Collection[str]) -> pd.DataFrame:
    return rows_where(job.frame(name), "qid", qids)


def _of_store(store: Path, entries: Mapping[str, str], name: str, qids: Collection[str]) -> pd.DataFrame:
    if name not in entries and name in ("answers", "verdicts"):  # some are missing, so that they were not stored
        return pd.DataFrame({"qid": []})
    try:
        return pd.read_parquet(store / entries[name] / f"{name}.parquet", filters=[("qid", "in", list(qids))])
    except (KeyError, OSError, ValueError) as error:
        raise DataError(f"the store {store} no longer holds {name}") from error


def topics_of(job: Answered, ids: Mapping[str, str] | None = None, most: int | None = None) -> Iterator[TopicTrace]:
    """The job's answered topics, in the order of its outcomes; ids: measured traces, by qid.

    most: of more topics a sample of this size, drawn by a hash of the qid, so that all systems have the same topics.
    """
    outcomes = job.outcomes[job.outcomes["answer_status"].ne(NOT_SAMPLED)]
    if most is not None and len(outcomes) > most:
        drawn = sorted(outcomes["qid"], key=lambda qid: sha256(str(qid).encode()).digest())[:most]
        outcomes = outcomes[outcomes["qid"].isin(drawn)]
    qids = set(outcomes["qid"])
    answers, verdicts = (_rows(job.frame(name, qids)) for name in ("answers", "verdicts"))
    evidence = job.frame("evidence", qids)
    expected = expectations_of(job.frame("topics", qids), evidence)
    missed = missed_parts(job.frame("part_scores", qids), evidence, job.n_tokens)
    names = [info.name for info in besides_rankings(job.measures)]
    contexts = _contexts(job.frame("layouts", qids), job.frame("prefixes", qids), job.n_tokens)
    for row in outcomes.to_dict("records"):
        qid = row["qid"]
        context, chunks = contexts[qid]
        label = None if pd.isna(row["label"]) else int(row["label"])
        reason = _text(row.get("reason"))
        yield TopicTrace(
            qid=qid,
            query=row["query"],
            chunks=chunks,
            context=context,
            answer=_text(row["answer"]),
            verdict={"label": label, "class": JUDGE_CLASSES.get(label or 0), "status": row["judge_status"]}
            | ({} if reason is None else {"reason": reason}),
            scores={} if pd.isna(row["ir_score"]) else {"ir_score": float(row["ir_score"])},
            error=_text(row["answer_error"]),
            model=job.model,
            price=job.price,
            usage=usage_of(answers.get(qid)),
            expectations=expected.get(qid, {}),
            feedback=feedback_of(row, names, missed.get(qid), usage_of(verdicts.get(qid))),
            trace_id=(ids or {}).get(qid),
            conversation=_text(row.get(CONVERSATION)),
        )


def _contexts(
    layouts: pd.DataFrame, prefixes: pd.DataFrame, n_tokens: int
) -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Every topic's context at the budget, and its passages (docno, text), cut at the context's end."""
    here = prefixes[prefixes["n_tokens"] == n_tokens].merge(layouts, on=["qid", "layout"], validate="one_to_one")
    found = {}
    for row in here.to_dict("records"):
        text, starts = row["text"][: row["end"]], [int(start) for start in row["starts"]]
        ends = [*(start - 1 for start in starts[1:]), len(row["text"])][: len(starts)]  # a space divides them
        pieces = zip(row["docnos"], starts, ends, strict=True)
        found[row["qid"]] = text, [(docno, text[start:end]) for docno, start, end in pieces][: row["n_chunks"]]
    return found


def expectations_of(topics: pd.DataFrame, evidence: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """MLflow's expectations of every topic by qid; {} if the dataset holds no truth.

    `expected_response`: the reference answer, the first of several. `expected_retrieved_context`: the evidence,
    {doc_uri, content} a part. `expected_facts`: its texts, where there is no reference answer: MLflow's judge of
    correctness refuses to be given both.
    """
    parts = parts_of(evidence)
    found: dict[str, dict[str, Any]] = {}
    for qid, answers in references(topics).items():
        of_topic: dict[str, Any] = {"expected_response": answers[0]} if answers else {}
        texts = [row["text"] for row in parts.get(qid, ()) if isinstance(row["text"], str)]
        if texts and not answers:
            of_topic["expected_facts"] = texts
        if qid in parts:
            of_topic["expected_retrieved_context"] = [expected_part(row) for row in parts[qid]]
        found[qid] = of_topic
    return found


def evaluation_metrics(
    found: Mapping[str, float], outcomes: pd.DataFrame, measures: Sequence[AnswerMeasureInfo]
) -> dict[str, float]:
    """The job's metrics for an evaluation run: mean IR score, class shares and answer measures."""
    names = ["correct_share", "hallucination_share", "judge_share_1", "judge_share_missing"]
    names += [info.name for info in measures]
    shown = {name: found[name] for name in names if name in found}
    return {"ir_score": float(outcomes["ir_score"].mean()), **shown, "topics": len(outcomes)}


def why_score(parts: Sequence[tuple[str, float]]) -> str:
    """Names the evidence parts (text, value) that the context lacks, the least covered first."""
    missed = sorted((value, number, text) for number, (text, value) in enumerate(parts, 1) if value < 1)
    if not missed:
        return "The context holds every part of the evidence."
    lines = [f"part {number} of {len(parts)} at {value:.2f}: {_short(text)}" for value, number, text in missed]
    return "The context lacks evidence: " + "; ".join(lines)


def why_class(label: int, reason: object, raw: object) -> str:
    """The judge's class in words, and its reason, or its reply if it gave none."""
    said = next((text for text in (reason, raw) if isinstance(text, str)), "")
    return ": ".join(filter(None, (JUDGE_CLASSES[label], said)))


def feedback_of(
    row: Mapping[Hashable, Any], names: Sequence[str], parts: Sequence[tuple[str, float]] | None, judged: Usage
) -> dict[str, Feedback]:
    """Judge's class, whether the answer is right, IR score and the answer measures `names`, as far as available."""
    found: dict[str, Feedback] = {}
    if pd.notna(row["label"]):
        label = int(row["label"])
        why = why_class(label, row.get("reason"), row.get("judge_raw"))
        found |= {CLASS: Feedback(label, why, judged), "correct": Feedback(_is_right(label, row), why)}
    if pd.notna(row["ir_score"]):
        found["ir_score"] = Feedback(float(row["ir_score"]), why_score(parts) if parts else None)
    return found | {name: Feedback(float(row[name])) for name in names if pd.notna(row[name])}


def _is_right(label: int, row: Mapping[Hashable, Any]) -> bool:
    """`right_of` for one row."""
    return label == (LACK if row.get("unanswerable") is True else RIGHT)


def missed_parts(scores: pd.DataFrame, evidence: pd.DataFrame, n_tokens: int) -> dict[str, list[tuple[str, float]]]:
    """(text, value) of every scored evidence part of these topics at a budget, by qid."""
    here = scores[scores["n_tokens"] == n_tokens]
    rows = here.merge(evidence[["qid", "part", "text"]], on=["qid", "part"], how="left")
    return {str(qid): list(zip(of["text"], of["value"].astype(float), strict=True)) for qid, of in rows.groupby("qid")}


def parts_of(evidence: pd.DataFrame) -> dict[str, list[dict[Hashable, Any]]]:
    """The parts of the evidence by qid, in order."""
    rows = evidence.sort_values(["qid", "part"]).groupby("qid")
    return {str(qid): of_topic.to_dict("records") for qid, of_topic in rows}


def expected_part(row: Mapping[Hashable, Any]) -> dict[str, str]:
    """A part of the evidence in MLflow's form {doc_uri, content}, as far as known."""
    named = {"doc_uri": row["docno"], "content": row["text"]}
    return {key: value for key, value in named.items() if isinstance(value, str)}


def _rows(frame: pd.DataFrame) -> dict[str, dict[Hashable, Any]]:
    return {row["qid"]: row for row in frame.to_dict("records")}


def usage_of(row: Mapping[Hashable, Any] | None) -> Usage:
    """The usage on a row of answers or verdicts; no tokens if none were used."""
    if row is None:
        return Usage()
    seconds = float(row["seconds"])
    tokens = int(row["prompt_tokens"]), int(row["completion_tokens"])
    of_cache = (None if pd.isna(n := row.get(name)) else int(n) for name in OPTIONAL)
    return Usage(*tokens, float(row["cost_usd"]), seconds, *of_cache) if any(tokens) else Usage(seconds=seconds)


def _short(text: str) -> str:
    return text if len(text) <= _PART_CHARS else f"{text[:_PART_CHARS]}…"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
