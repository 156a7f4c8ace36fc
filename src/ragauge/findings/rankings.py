"""What the parts that retrieve tell of their work, and measures of their rankings, which do not depend on N."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    Num,
    Section,
    Shown,
    Text,
)
from ragauge.contract.frames import count_rows
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.offers import PartOffers, offered
from ragauge.findings.tables import number
from ragauge.measures import qrels_of, write_qrels, write_trec_run
from ragauge.measures.rankings import cut_short, full_name, metric_of, ranking_means, unjudged


class Retrieving(JobFinding):
    """What became of documents and questions on their way into the context."""

    name = "retrieving"
    after = "scores"
    metrics = (
        "n_chunks",
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
    """What `query_checks` says over topics; a mean is left out where no topic has a value."""
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
        """Sentences on what the measures cannot see: a ranking that is cut, documents without a judgement."""
        run, evidence, of = job.frame("run"), job.frame("evidence"), job.pipeline.components
        retriever, reranker = offered(of.retriever, PartOffers), offered(of.reranker, PartOffers)
        measures = job.pipeline.measures
        told = (
            cut_short(measures, run, (retriever.top_k, reranker.top_k or reranker.depth)),
            unjudged(measures, qrels_of(evidence)),
        )
        system = job.record["choices"].get("retriever", "ragauge")
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


class Rankings(Finding):
    """nDCG, recall and the like, as the jobs have measured them."""

    name = "rankings"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """{metric: name} in the order of the config; None where no evidence names its document."""
        names = {info.name: info.label for info in jobs.answer_measures if is_ranking(info)}
        for record in jobs.records:
            names = {**record.get("rankings", {}), **names}
        known = {m: name for m, name in names.items() if any(m in r["metrics"] for r in jobs.records)}
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
        published = published_rankings(jobs.records)
        rows += [[name, *(Num(of.get(key)) for key in value)] for name, of in published.items()]
        study = (
            " The rows that are called published are those of the study behind `experiment=hyde_fusion`."
            if published
            else ""
        )
        about = Text(
            "Over whole documents, with the documents of the evidence as relevant, or over chunks where a name says "
            "so; they do not depend on N. Means over the topics that have a relevant one, with intervals. The mark "
            f"“≈ best” is as in the leaderboard; the paired tests are among those there.{study}"
        )
        columns: Heads = ["System", *(Col(name) for name in value.values())]
        section = Section("Measures of the rankings", [about, Grid("Measures of the rankings", columns, rows)])
        return Shown([section])


PRESET = "hyde_fusion"

_TABLES: Mapping[str, Mapping[str, Sequence[float]]] = {
    "simple, tuned encoder": {
        "p": (0.87, 0.679, 0.582667, 0.5185, 0.4556),
        "r": (0.326167, 0.495167, 0.629333, 0.738833, 0.805167),
        "f1": (0.4678, 0.562867, 0.594533, 0.599119, 0.572635),
    },
    "HyDE": {
        "p": (0.644, 0.507, 0.426, 0.382, 0.338),
        "r": (0.241667, 0.369333, 0.460167, 0.545667, 0.599667),
        "f1": (0.346467, 0.4198, 0.434552, 0.441619, 0.425206),
    },
    "RAG-Fusion": {
        "p": (0.862, 0.669, 0.576667, 0.5245, 0.4752),
        "r": (0.322, 0.485333, 0.620167, 0.743167, 0.838333),
        "f1": (0.4624, 0.553, 0.58741, 0.604833, 0.597024),
    },
    "RAG-Fusion, tuned reranker": {"f1": (0.508, 0.577, 0.602, 0.618, 0.613)},
}


def published_rankings(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """{name: {metric: value}} of the study's tables, where the jobs have its preset; {} elsewhere.

    The metrics are named as MLflow's are: p_at_1 to f1_at_5.
    """
    if any(record["choices"].get("experiment") != PRESET for record in records):
        return {}
    return {
        f"{name} (published)": {
            f"{measure}_at_{k}": value for measure, values in table.items() for k, value in enumerate(values, 1)
        }
        for name, table in _TABLES.items()
    }
