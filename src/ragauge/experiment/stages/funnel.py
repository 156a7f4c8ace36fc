"""The stages that follow the evidence through a job: corpus, chunks, hits, passages."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragauge.contract.offers import MeasureOffers, offered
from ragauge.contract.protocols import BringsTexts, Measure, Tools
from ragauge.experiment.stages.retrieval import retrieved_chunks
from ragauge.experiment.stages.stage import Components, Frames, Read, Reads, Stage
from ragauge.measures.evidence_trail import in_corpus, joined
from ragauge.measures.floor import raw
from ragauge.measures.scores import part_scores
from ragauge.retrieval.contexts import build_contexts

_UNRERANKED = Read("run", before="reranked")


def has_funnel(components: Components) -> bool:
    """Whether the measure of the job can be taken of any text: one that uses a model
    would have to ask it at every step.
    """
    measure = components.measure
    return isinstance(measure, Measure) and "chat" not in offered(measure, MeasureOffers).uses


class _FollowsEvidence(Stage):
    uses = frozenset()

    @property
    def component(self) -> Measure:
        found: Measure = raw(self.components.measure)
        return found


class FindInCorpus(_FollowsEvidence):
    """evidence_in_corpus: every part of the evidence in whole documents and in single chunks (`in_corpus`).

    Neither retriever nor budget is in its key: the jobs of a sweep share one.
    """

    name = "funnel_corpus"
    makes = ("evidence_in_corpus",)
    doing = "looking for {scored_evidence:,} pieces of evidence in {docs:,} documents"

    @property
    def _chunked(self) -> bool:
        return not isinstance(self.components.retriever, BringsTexts)

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return tuple(map(Read, ("scored_evidence", "docs", *(("chunks",) if self._chunked else ()))))

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["scored_evidence"]
        if evidence.empty:
            columns = ["qid", "part", "text", "corpus", "best_chunk", "holders"]
            return {"evidence_in_corpus": pd.DataFrame(columns=columns)}
        chunks = reads.rows("chunks") if self._chunked else None
        return {"evidence_in_corpus": in_corpus(self.component, evidence, reads.rows("docs"), chunks)}


class FollowEvidence(_FollowsEvidence):
    """evidence_trail: qid, part, and the measure of every part after each step that the job has.

    Columns: corpus, best_chunk, candidates (all hits before reranking), reranked, expanded, compressed (all
    of each joined, whatever the budget). The budget is none of them: jobs of all budgets share one.
    """

    name = "funnel"
    makes = ("evidence_trail",)
    doing = "following {evidence_in_corpus:,} pieces of evidence"

    @property
    def _runs(self) -> dict[str, Read]:
        """The runs by step: {step: what is read}."""
        if self.components.reranker.kind == "none":
            return {"candidates": Read("run")}
        return {"candidates": _UNRERANKED, "reranked": Read("run")}

    @property
    def _passages(self) -> dict[str, Read]:
        """The passages by step."""
        expands, compresses = (part.kind != "none" for part in (self.components.expander, self.components.compressor))
        return {
            **({"expanded": Read("passages", before="compressed" if compresses else "")} if expands else {}),
            **({"compressed": Read("passages")} if compresses else {}),
        }

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        texts = (*self._runs.values(), *self._passages.values())
        return (Read("evidence_in_corpus"), Read("chunks"), *texts)

    def params(self) -> dict[str, Any]:
        return {**super().params(), "steps": [*self._runs, *self._passages]}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["evidence_in_corpus"]
        trail = evidence.drop(columns=["text", "holders"])
        if evidence.empty:
            return {"evidence_trail": trail.assign(**dict.fromkeys((*self._runs, *self._passages), 0.0))}
        for step, run in self._runs.items():
            held = evidence["holders"]
            trail[step] = joined(self.component, evidence, reads[run], reads.rows("chunks"), held)
        for step, passages in self._passages.items():
            trail[step] = joined(self.component, evidence, reads[passages])
        return {"evidence_trail": trail}


class ScoreUnreranked(_FollowsEvidence):
    """unreranked_scores: what would stand within every budget in the order before reranking, a row per part.

    Neither expanded nor compressed: that was done to what the reranker made.
    """

    name = "funnel_unreranked"
    reads = (_UNRERANKED, Read("chunks"), Read("scored_evidence"))
    makes = ("unreranked_scores",)
    doing = "scoring {scored_evidence:,} pieces of evidence before reranking"
    uses = frozenset({"tokenizer"})

    def params(self) -> dict[str, Any]:
        return {**super().params(), "n_grid": list(self.budget.grid)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["scored_evidence"]
        qids = evidence["qid"].drop_duplicates().tolist()
        run, chunks = reads[_UNRERANKED], retrieved_chunks(reads, _UNRERANKED)
        laid_out = build_contexts(run, chunks, tools.tokenizer, self.budget.grid, qids)
        return {"unreranked_scores": part_scores(self.component, evidence, *laid_out)}
