"""The stages of a job as a list.

The key of a stage's output follows from the stage's own declaration alone (`ragauge.experiment.stages.plan`). So a new
stage is a class and a line in `stages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from ragauge.contract.loading import locate
from ragauge.contract.measures import AnswerMeasure, MeasuresPassages, MeasuresRanking, VariesContexts
from ragauge.contract.retrieval import BringsTexts
from ragauge.contract.stages import Budget, Components, Read, Stage
from ragauge.experiment.stages.ahead import Ahead
from ragauge.experiment.stages.answering import (
    Answer,
    AskedAnswers,
    AskedContexts,
    Judging,
    LongestPassages,
    MeasureAnswers,
    MeasureRankings,
    NumberPassages,
    UsedPassages,
    varied_stages,
)
from ragauge.experiment.stages.contexts import Compress, Cut, Expand, LayOut
from ragauge.experiment.stages.documents import Chunk, Index, Locate, ReadDataset
from ragauge.experiment.stages.measuring import (
    CheckQueries,
    ChunkTruth,
    CorrectScores,
    Derive,
    FindInCorpus,
    Floor,
    FollowEvidence,
    RankingColumns,
    Scorable,
    ScorableHere,
    Score,
    ScoreRanking,
    ScoreUnreranked,
    has_funnel,
)
from ragauge.experiment.stages.plan import Plan, Step
from ragauge.experiment.stages.retrieval import (
    Bring,
    BringAlone,
    FoundByQuestion,
    LeaveOutOwn,
    Recall,
    Rerank,
    Retrieve,
    RetrieveRewritten,
    Rewrite,
    is_rewritten,
)
from ragauge.measures.floor import is_corrected
from ragauge.measures.rankings import of_chunks


def stages(
    components: Components,
    budget: Budget,
    to_judge: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    to_answer: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    ahead: Ahead | None = None,
) -> list[Stage]:
    """The stages of a job in order; where two make the same frame, the stages after them read the later one's.

    to_judge, to_answer: choose the answers that are judged, and the contexts that are answered from; all of them
    unless they are given. ahead: the other budgets of the sweep, asked along with the job's own.
    """

    def chosen() -> Iterator[Stage]:
        yield ReadDataset(components, budget)
        yield Locate(components, budget)
        yield Chunk(components, budget)
        if not isinstance(components.retriever, BringsTexts):
            for arm in components.retriever.retrievers:
                yield Index(components, budget, arm)
            yield Index(components, budget)
        yield from _ranking(components, budget)
        if components.expander.kind != "none":
            yield Expand(components, budget)
        if components.compressor.kind != "none":
            yield Compress(components, budget)
        yield LayOut(components, budget)
        yield Scorable(components, budget)
        if isinstance(components.retriever, BringsTexts):
            yield ScorableHere(components, budget)
        yield Score(components, budget)
        yield from _following(components, budget)
        yield Floor(components, budget)
        if is_corrected(components.measure):
            yield CorrectScores(components, budget)
        if any(map(of_chunks, budget.measures)):
            yield ChunkTruth(components, budget)
        yield ScoreRanking(components, budget)
        if budget.derived:
            yield Derive(components, budget)
        yield Cut(components, budget)
        if any(map(_sees_passages, components.answers.values())) or components.llm.cite:
            yield UsedPassages(components, budget)
        if any(measure.sees_longest for measure in components.answers.values()):
            yield LongestPassages(components, budget)
        if components.llm.cite:
            yield NumberPassages(components, budget)
        if to_answer is not None:
            yield AskedContexts(components, budget, to_answer)
        yield Answer(components, budget, to_answer is not None, ahead)
        for name, measure in components.answers.items():
            if own := measure.stages:
                yield from locate(f"answers.{name}", own)(components, budget, name, measure)
            elif isinstance(measure, VariesContexts):
                yield from varied_stages(components, budget, name, measure, to_answer)
            else:
                stage = MeasureRankings if isinstance(measure, MeasuresRanking) else MeasureAnswers
                yield stage(components, budget, name, measure)
        yield RankingColumns(components, budget)
        yield AskedAnswers(components, budget, to_judge)
        yield Judging(components, budget, ahead)

    return list(chosen())


def _sees_passages(measure: AnswerMeasure) -> bool:
    """Whether a measure uses single passages of contexts."""
    varies = isinstance(measure, VariesContexts) and measure.varies == "context"
    return (
        varies
        or isinstance(measure, MeasuresRanking)
        or (isinstance(measure, MeasuresPassages) and not measure.sees_longest)
    )


def _following(components: Components, budget: Budget) -> Iterator[Stage]:
    """The stages that follow evidence through retrieval, if the job can locate its losses."""
    if has_funnel(components):
        yield FindInCorpus(components, budget)
        yield FollowEvidence(components, budget)
        if components.reranker.kind != "none":
            yield ScoreUnreranked(components, budget)


def _ranking(components: Components, budget: Budget) -> Iterator[Stage]:
    """The stages that make a run, with a comparison of rewritten queries to the question itself."""
    brings = isinstance(components.retriever, BringsTexts)
    drops = components.dataset.own_document == "drop"
    yield Bring(components, budget) if brings else Retrieve(components, budget)
    if drops:
        yield LeaveOutOwn(components, budget)
    if components.retriever.approximate:
        yield Recall(components, budget)
    if is_rewritten(components):
        yield FoundByQuestion(components, budget)
        yield Rewrite(components, budget)
        yield RetrieveRewritten(components, budget)
        if drops:
            yield LeaveOutOwn(components, budget)
        yield CheckQueries(components, budget)
    if components.reranker.kind != "none":
        yield Rerank(components, budget)


def question_stages(stages: Sequence[Stage]) -> list[Stage]:
    """The stages of a job that work on a question until it is answered, in order.

    It leaves out stages that run once for all documents, measures, judges, and evaluation-only stages.
    """
    plan = Plan(stages)
    of_question: set[Step] = set()
    for step in plan.steps:
        sources = {source for found in step.sources.values() for source in found}
        if any(read.name == "topics" for read in step.stage.reads) or not of_question.isdisjoint(sources):
            of_question.add(step)
    wanted = [step.stage for step in plan.towards(plan.makers(Read("answers"))) if step in of_question]
    return [
        BringAlone(stage.components, stage.budget) if isinstance(stage, Bring) else stage
        for stage in wanted
        if not isinstance(stage, LeaveOutOwn)
    ]
