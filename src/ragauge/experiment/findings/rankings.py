"""What measures of rankings say of a job's run, and the run and the truth as TREC files."""

from __future__ import annotations

from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.contract.offers import PartOffers, offered
from ragauge.measures import qrels_of, write_qrels, write_trec_run
from ragauge.measures.rankings import cut_short, full_name, metric_of, ranking_means, unjudged


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
