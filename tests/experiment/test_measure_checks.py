"""A measure that needs what the job has not is told before any work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from ragauge.answering import NoLLM
from ragauge.answering.judges import NoJudge
from ragauge.contract.component import Embedder
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.experiment.stages.checks import check_measures
from ragauge.measures.answers import ExactMatch, Usual
from ragauge.retrieval.retrievers import NoRetrieval
from small_pipeline import TOPICS, SmallPipelines, own_values


@dataclass(frozen=True)
class Asks(ExactMatch):
    """Needs a chat model and contexts."""

    uses = frozenset({"chat"})
    needs = frozenset({"contexts"})
    info = AnswerMeasureInfo("asks", "asks")


@pytest.fixture
def small(tmp_path: Path, hash_embedder: Embedder) -> SmallPipelines:
    return SmallPipelines(tmp_path, hash_embedder)


def test_what_a_measure_needs_and_the_job_lacks_is_named(small: SmallPipelines) -> None:
    check_measures(small(answers={"em": ExactMatch()}))
    bare = tuple({"qid": row["qid"], "query": row["query"]} for row in TOPICS)
    with pytest.raises(ConfigError, match=r"^answers.em compares with reference answers, and no topic"):
        check_measures(small(topics=bare, answers={"em": ExactMatch()}))
    with pytest.raises(ConfigError, match=r"^answers.em measures answers, and llm=none gives none"):
        check_measures(small(llm=NoLLM(), answers={"em": ExactMatch()}))
    with pytest.raises(ConfigError, match=r"^answers.asks asks an LLM, .* choose an evaluator"):
        check_measures(small(answers={"asks": Asks()}))


@dataclass(frozen=True)
class AnswersAlone(NoLLM):
    """A chat model of one's own that no other part can ask."""

    kind: ClassVar[str] = "chat"


def test_a_measure_does_not_ask_a_chat_model_that_only_answers(small: SmallPipelines) -> None:
    job = small(llm=AnswersAlone(), answers={"asks": Asks()})
    assert job.shared_chat is None
    with pytest.raises(ConfigError, match=r"^answers.asks asks an LLM, .* choose an evaluator"):
        check_measures(job)


@dataclass(frozen=True)
class Rated(Asks):
    """Values of 1; for the first topic none, with a status."""

    status: str = "ok"
    info = AnswerMeasureInfo("rated", "rated")

    def measure(self, topics: Any, evidence: Any, contexts: Any, answers: pd.DataFrame, tools: Any) -> pd.DataFrame:
        found = answers[["qid", "n_tokens"]].assign(measure="rated", value=1.0, status="ok")
        if self.status != "ok":
            found.loc[found["qid"] == "q1", ["value", "status"]] = [float("nan"), self.status]
        return found


@pytest.mark.parametrize("status", ["ok", "no claims"])
def test_values_that_cannot_be_had_are_not_missing_ones(small: SmallPipelines, status: str) -> None:
    found = own_values(small(answers={"rated": Rated(status=status)}, max_missing_share=0.0))
    assert found["value"].isna().tolist() == [status != "ok", False, False]


def test_values_that_an_llm_failed_to_give_are_held_against_the_share_that_may_be_missing(
    small: SmallPipelines,
) -> None:
    job = small(answers={"rated": Rated(status="failed"), "em": ExactMatch()}, max_missing_share=0.3)
    assert own_values(job).groupby("measure")["value"].count().to_dict() == {"em": 3, "rated": 0}
    assert job.outcomes["rated"].isna().all()
    with pytest.raises(MissingError, match=r"^1 of 3 values of answers\.rated are missing, more than"):
        job.check_measured()
    found = own_values(small(answers={"rated": Rated(status="failed")}, max_missing_share=0.4))
    assert found["value"].isna().sum() == 1


def test_a_job_without_contexts_is_an_error_alone_and_a_baseline_in_a_sweep(small: SmallPipelines) -> None:
    @dataclass(frozen=True)
    class OfContexts(ExactMatch):
        needs = frozenset({"contexts"})

    job = small(retriever=NoRetrieval(), answers={"c": OfContexts()})
    with pytest.raises(ConfigError, match=r"^answers.c measures contexts, and this job gives the LLM none"):
        check_measures(job)
    check_measures(job, alone=False)


def test_usual_measures_are_left_out_where_a_named_one_is_an_error(
    small: SmallPipelines, caplog: pytest.LogCaptureFixture
) -> None:
    bare = tuple({"qid": row["qid"], "query": row["query"]} for row in TOPICS)
    caplog.set_level("INFO")
    job = small(topics=bare, answers={"usual": Usual()}, judge=NoJudge())
    assert [info.name for info in job.answer_measures] == ["em", "f1", "contains", "rouge_l"]
    check_measures(job)
    assert job.answer_measures == []
    assert "answer_values" not in [stage.name for stage in job.stages]
    assert [r.getMessage() for r in caplog.records] == [
        "left out: answers.usual compares with reference answers, and no topic of this dataset has one"
    ]
    whole = small(answers={"usual": Usual()})
    check_measures(whole)
    assert "usual" in whole.components.answers
