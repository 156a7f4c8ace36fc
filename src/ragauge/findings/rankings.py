"""Counts of retrieval components, and measures of their rankings, which do not depend on N."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.answer_measures import is_ranking
from ragauge.contract.finding import (
    Cell,
    Col,
    Finding,
    Found,
    Founds,
    Grid,
    Heads,
    JobFinding,
    Section,
    Shown,
    Text,
)
from ragauge.contract.frames import count_rows
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import Metric
from ragauge.findings.tables import number
from ragauge.measures import qrels_of, write_qrels, write_trec_run
from ragauge.measures.rankings import cut_short, full_name, metric_of, ranking_means, unjudged


class Retrieving(JobFinding):
    """Documents and questions on their way into the context."""

    name = "retrieving"
    after = "scores"
    metrics = (
        Metric("n_chunks", group="size"),
        "seconds_made_{chunks,index}",
        "ann_recall_at_10",
        "rewriter_{failed,similarity,new_hits}",
        "compressor_ratio",
    )

    def compute(self, job: Job, found: Founds) -> Found:
        """Metrics alone."""
        pipeline = job.pipeline
        values: dict[str, float] = {"n_chunks": count_rows(job.rows("chunks"))}
        # Whoever made them: a stage that came from the store took no time here.
        made = [name for name in ("chunks", "index") if name in pipeline.making]
        values |= {f"seconds_made_{name}": pipeline.making[name].seconds for name in made}
        if any("ann" in stage.makes for stage in pipeline.stages):
            ann = job.frame("ann")
            values |= dict(zip(ann["metric"], ann["value"], strict=True))
        if pipeline.rewritten:
            values |= rewriting(job.frame("query_checks"))
        if pipeline.components.compressor.kind != "none":
            values |= compression(job.frame("compression"))
        return Found(metrics=values)


def rewriting(checks: pd.DataFrame) -> dict[str, float]:
    """The means of `query_checks` over topics, without those that no topic has a value for."""
    means = checks[["similarity", "new_hits"]].mean().dropna()
    return {
        "rewriter_failed": int(checks["failed"].sum()),
        **{f"rewriter_{name}": float(value) for name, value in means.items()},
    }


def compression(sizes: pd.DataFrame) -> dict[str, float]:
    """`compressor_ratio`: characters of the passages after compression over those before, of all topics.

    sizes: one row [characters_in, characters_out]; 1 where there was no text.
    """
    row = sizes.iloc[0]
    return {"compressor_ratio": row["characters_out"] / row["characters_in"] if row["characters_in"] else 1.0}


class RankingsFound(JobFinding):
    """The means of the ranking measures."""

    name = "rankings"
    after = "scores"

    def compute(self, job: Job, found: Founds) -> Found:
        """Sentences on limits of the measures: truncated rankings, unjudged documents."""
        run, evidence, of = job.frame("run"), job.frame("evidence"), job.pipeline.components
        retriever, reranker = of.retriever, of.reranker
        measures = job.pipeline.measures
        told = (
            cut_short(measures, run, (retriever.top_k, reranker.top_k or reranker.depth)),
            unjudged(measures, qrels_of(evidence)),
            _own(job),
        )
        system = job.record.choices.get("retriever", "ragauge")
        return Found(
            [sentence for sentence in told if sentence],
            metrics=ranking_means(job.frame("ranking_values")),
            files={
                "run.trec": lambda path: write_trec_run(run, path, system),
                "qrels.trec": lambda path: write_qrels(evidence, path),
            },
            record={"rankings": {metric_of(name): name for name in map(full_name, measures)}},
        )

    def show(self, job: Job, value: list[str], found: Founds) -> Shown:
        """The sentences."""
        return Shown(lines=value)


def _own(job: Job) -> str | None:
    """A sentence if documents identical to their topics were left out of rankings."""
    made = any("own_documents" in stage.makes for stage in job.pipeline.stages)
    n, topics = (len(job.frame(name)) if made else 0 for name in ("own_documents", "topics"))
    left = "left out of its ranking as BEIR's evaluator does (dataset.own_document=keep keeps it)"
    return f"{n:,} of {topics:,} topics are themselves a document of the corpus, each {left}" if n else None


class Rankings(Finding):
    """nDCG, recall and other measures of rankings, from the jobs."""

    name = "rankings"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """{metric: name} in the order of the config; None if no evidence names its document."""
        names = {info.name: info.label for info in jobs.answer_measures if is_ranking(info)}
        for record in jobs.records:
            names = {**record.rankings, **names}
        known = {m: name for m, name in names.items() if any(m in r.metrics for r in jobs.records)}
        return Found(known) if known else None

    def show(self, jobs: Jobs, value: dict[str, str], found: Founds) -> Shown:
        """A row per system."""
        of_jobs = jobs.metrics_by_system()
        rows: list[list[Cell]] = []
        for row in found["leaderboard"].frame.to_dict("records"):
            metrics = next(iter(of_jobs[row["system"]].values()))
            best = {key: "≈ best" if row.get(f"{key}_in_best_set") is True else "" for key in value}
            cells = [number(metrics, key, tag=tag) for key, tag in best.items()]
            rows.append([str(row["system"]), *cells])
        about = Text(
            "Over whole documents, with the documents of the evidence as relevant, or over chunks where a name says "
            "so; they do not depend on N. Means over the topics that have a relevant one, with intervals. The mark "
            "“≈ best” is as in the leaderboard; the paired tests are among those there."
        )
        columns: Heads = ["System", *(Col(name) for name in value.values())]
        section = Section("Measures of the rankings", [about, Grid("Measures of the rankings", columns, rows)])
        return Shown([section])
