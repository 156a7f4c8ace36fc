"""Skipped topics, and topics without evidence, its place in the documents, or a reference answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT, NO_DOCUMENT
from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.contract.metrics import Metric
from ragauge.contract.record import JobRecord
from ragauge.contract.stages import Stages
from ragauge.contract.topics import is_unanswerable, scorable
from ragauge.contract.visible import visible
from ragauge.llms.chat_use import Unasked
from ragauge.texts.languages import language_of_all
from ragauge.texts.model_languages import languages_of_model

_NAMED = 10  # topics that lack something, in a record
_READ = 100  # parts of the evidence, and questions, by which their language is recognised


class Skipped(JobFinding):
    """The rows of the dataset skipped by `dataset.on_error=skip`."""

    name = "skipped"
    after = "scores"
    metrics = (Metric("topics_skipped", group="size"),)

    def compute(self, job: Job, found: Founds) -> Found:
        """The reasons."""
        reasons = job.frame("skipped")["skipped"].tolist()
        return Found(reasons, metrics={"topics_skipped": len(reasons)})

    def show(self, job: Job, value: list[str], found: Founds) -> Shown:
        """A warning each."""
        return Shown(notes=[f"skipped: {reason}" for reason in value])


class Lacking(JobFinding):
    """Number of topics, and of those that lack something."""

    name = "lacking"
    after = "scores"
    metrics = (
        Metric(
            "topics_{without_contexts,without_documents,without_evidence,lost_evidence,without_reference,unanswerable}",
            group="size",
        ),
    )

    def compute(self, job: Job, found: Founds) -> Found:
        """`lacking`, with some of the topics; lost evidence parts as a table."""
        value, lost = lacking(job.pipeline), job.frame("lost_evidence")
        return Found(
            value,
            metrics=value.metrics,
            logged={"lost_evidence": lost} if len(lost) else {},
            record={"lacking": value.lacking, "foreign": value.foreign},
        )

    def show(self, job: Job, value: LackingTopics, found: Founds) -> Shown:
        """A sentence per missing part and lost evidence part, each once per sweep."""
        sweep = job.record.sweep_id
        lost = lost_text(job.frame("lost_evidence"))
        return Shown(lines=new_lines(lacking_text([value]), sweep), notes=new_lines(lost, sweep))


@dataclass(frozen=True)
class LackingTopics:
    """A job's topics that lack something, in fields that its record has too: numbers, some qids, sentences."""

    metrics: dict[str, float]
    lacking: dict[str, list[str]]
    foreign: list[str]


def lacking(pipeline: Stages) -> LackingTopics:
    """The number of a job's topics, and by missing part the number and first ten.

    metrics: topics, topics_<what>; lacking: qids by what: known contexts, documents among them, evidence,
    evidence where it should be, something to judge by,
    an answer. An unanswerable topic counts as that alone. foreign: models for other languages than the texts are in.
    """
    topics, lost = pipeline.frame("topics"), pipeline.frame("lost_evidence")
    evidence = scorable(pipeline.frame("evidence"), topics)
    marked, unranked = is_unanswerable(topics), unranked_topics(pipeline)
    named = topics["qid"].isin(pipeline.frame("evidence").dropna(subset="docno")["qid"])
    rows = {
        "without_contexts": topics["qid"].isin(unranked[NO_CONTEXT]),
        "without_documents": topics["qid"].isin(unranked[NO_DOCUMENT]) & named,
        "without_evidence": ~topics["qid"].isin(evidence["qid"]) & ~marked,
        "lost_evidence": topics["qid"].isin(lost["qid"]) & ~marked,
        "without_reference": topics["qid"].isin(pipeline.unjudged),
        "unanswerable": marked,
    }
    found = {name: topics.loc[here, "qid"].tolist() for name, here in rows.items()}
    counts = {f"topics_{name}": len(qids) for name, qids in found.items()}
    return LackingTopics(
        {"topics": len(topics), **counts},
        {name: qids[:_NAMED] for name, qids in found.items()},
        _foreign(pipeline.components, [*evidence["text"].dropna()[:_READ], *topics["query"][:_READ]]),
    )


def unranked_topics(pipeline: Stages) -> dict[str, list[str]]:
    """The qids of topics with unknown contexts, and of topics with contexts from unknown documents.

    None where a dry run would have to ask a service for the contexts.
    """
    found = pd.DataFrame(columns=["qid", "why"])
    if any("unranked" in stage.makes for stage in pipeline.stages):
        with suppress(Unasked):
            found = pipeline.frame("unranked")
    return {why: found.loc[found["why"] == why, "qid"].tolist() for why in (NO_CONTEXT, NO_DOCUMENT)}


def _foreign(components: Any, texts: Sequence[str]) -> list[str]:
    """A sentence for each model of the job that is not made for the main language of the texts."""
    of = {group: getattr(components, group) for group in ("chunker", "retriever", "compressor", "measure", "reranker")}
    uses = [part.uses for part in (*of.values(), *components.answers.values())]
    models = {group: of[group] for group in ("retriever", "reranker")}
    if any("embedder" in names for names in uses):
        models["embedder"] = components.embedder
    named = {group: str(model) for group, part in models.items() if (model := getattr(part, "model", None))}
    known = {group: names for group, model in named.items() if (names := languages_of_model(model))}
    found = language_of_all(texts) if known else None
    return [
        f"{group}.model={visible(named[group])} is for {', '.join(sorted(map(str.capitalize, names)))}, and the texts "
        f"are in {found.capitalize()}; choose one for {found.capitalize()}, or for many languages"
        for group, names in known.items()
        if found and found not in names
    ]


def new_lines(lines: Sequence[str], sweep: str | None) -> list[str]:
    """The lines not yet printed by the sweep's jobs in this process; all for a single job."""
    printed = set() if sweep is None else _printed(sweep)
    new = [line for line in lines if line not in printed]
    printed.update(new)
    return new


@cache
def _printed(sweep: str) -> set[str]:
    return set()


_LACKING = {
    "without_contexts": "have no contexts that are known: they have no IR score and no measure of the ranking",
    "without_documents": "have contexts that are no documents of the corpus word for word: no nDCG, RR and such",
    "without_evidence": "have no evidence: {scored}",
    "lost_evidence": "have evidence that is in no document, or not in the one it names",
    "without_reference": "have no reference answer: they are not judged",
    "unanswerable": "are unanswerable: right is class 1 there, and they are counted apart",
}
_LOST = 10  # parts of the evidence that are listed
_SHOWN = 200  # characters of one


def lacking_text(records: Sequence[JobRecord | LackingTopics]) -> list[str]:
    """Sentences on topics left out of measures for lack of data, from the jobs' metrics.

    Topics that lack something are named as far as a record has their qids (`lacking`). Models for other languages
    (`foreign`) have a sentence each.
    """
    metrics = [record.metrics for record in records]
    topics = max(m.get("topics", 0) for m in metrics)
    most = {name: max(m.get(f"topics_{name}", 0) for m in metrics) for name in _LACKING}
    others = most["without_contexts"] + most["without_evidence"] + most["unanswerable"] < topics
    scored = "the IR score is of the others" if others else "there is no IR score"
    foreign = dict.fromkeys(line for record in records for line in record.foreign)
    return [*foreign] + [
        f"{n:.0f} of {topics:.0f} topics {_LACKING[name].format(scored=scored)}{_named(records, name, n)}"
        for name, n in most.items()
        if n
    ]


def _named(records: Sequence[JobRecord | LackingTopics], name: str, n: float) -> str:
    if name == "unanswerable":  # those lack nothing
        return ""
    named: list[list[str]] = [record.lacking.get(name, []) for record in records]
    qids = max(named, key=len)
    more = ", …" if len(qids) < n else ""
    return f" ({', '.join(map(visible, qids))}{more})" if qids else ""


def lost_text(lost: pd.DataFrame) -> list[str]:
    """A line for each of the first ten lost evidence parts, with the most similar text.

    lost: qid, part, docno, text, near_docno, near (`ragauge.measures.located.locate`).
    """
    lines = []
    for row in lost.head(_LOST).to_dict("records"):
        named = isinstance(row["docno"], str)
        where = f"not in document {row['docno']!r}, which it names" if named else "in no document"
        if not isinstance(row["near"], str):
            near = "no sentence there is like it"
        elif row["near"] == row["text"]:
            near = f"document {row['near_docno']!r} holds it"
        else:
            near = f"nearest, in {row['near_docno']!r}: {_quoted(row['near'])}"
        lines.append(f"qid {row['qid']!r}, part {row['part']}: {_quoted(row['text'])} is {where}; {near}")
    more = len(lost) - len(lines)
    return [*lines, *([f"{more:,} more such parts are in lost_evidence.json"] if more else [])]


def _quoted(text: str) -> str:
    shown = visible(text, one_line=True)
    return repr(shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…")
