"""One row per topic: retrieval, answer and verdict."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from ragauge.contract.answer_measures import NO_REFERENCE, NOT_SAMPLED
from ragauge.contract.answering import Judge
from ragauge.contract.frames import SCHEMAS
from ragauge.contract.outcomes import RESERVED
from ragauge.contract.stages import Stages
from ragauge.contract.topics import references, without_reference
from ragauge.estimate.prompts import other_labels


def unjudged(judge: Judge, topics: pd.DataFrame) -> frozenset[str]:
    """The topics without a reference answer, if the judge needs one."""
    return frozenset(without_reference(topics) if judge.needs_reference else ())


def _at_n(job: Stages, frame: str) -> pd.DataFrame:
    rows = job.frame(frame)
    return rows[rows["n_tokens"] == job.n_tokens]


def retrieved(job: Stages) -> pd.DataFrame:
    """A row per topic at the job's n_tokens, before any LLM: query, answer_reference, ir_score and `_features`.

    ir_score is missing for a topic without evidence and an unanswerable one. Attributes of the topics, and
    unanswerable where a topic is so, are further columns.
    """
    scores = _at_n(job, "scores")
    rows = (
        job.frame("topics")
        .drop(columns=["answers", "wrong_answers"], errors="ignore")
        .merge(
            scores[["qid", "value"]].rename(columns={"value": "ir_score"}), on="qid", how="left", validate="one_to_one"
        )
    )
    rows.insert(rows.columns.get_loc("ir_score"), "n_tokens", job.n_tokens)  # type: ignore[arg-type]
    return rows.rename(columns={"answer": "answer_reference"}).merge(_features(job), on="qid", validate="one_to_one")


def _features(job: Stages) -> pd.DataFrame:
    """Columns known before any LLM call, besides the IR score (keyed by qid).

    evidence_best, evidence_worst: the highest and lowest score of the topic's evidence parts, in [0, 1].
        Missing where the IR score is.
    answer_in_context: 1 where a reference answer stands in the context (case folded), else 0; missing for a
        topic without one.
    n_used: tokens of the context. score_gap: the retriever's first score less its second, 0 without one.
    """
    topics, run = job.frame("topics"), job.frame("run")
    of_topic = _at_n(job, "part_scores").groupby("qid")["value"]
    known = references(topics)
    rows = topics[["qid"]].merge(job.contexts[["qid", "text", "n_used"]], on="qid", validate="one_to_one")
    pairs = zip(rows["qid"].map(known), rows["text"].str.casefold(), strict=True)
    top = run.query("rank < 2").pivot(index="qid", columns="rank", values="score")
    top = top.reindex(columns=[0, 1])
    return pd.DataFrame(
        {
            "qid": rows["qid"],
            "evidence_best": rows["qid"].map(of_topic.max()),
            "evidence_worst": rows["qid"].map(of_topic.min()),
            "answer_in_context": [
                float(any(one.casefold() in text for one in answers)) if answers else float("nan")
                for answers, text in pairs
            ],
            "n_used": rows["n_used"].astype(float),
            "score_gap": rows["qid"].map(top[0] - top[1]).fillna(0.0),
        }
    )


def with_values(rows: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column per measure of frame `answer_values`."""
    if values.empty:
        return rows
    wide = values.pivot(index="qid", columns="measure", values="value").astype("float64")
    rows = rows.drop(columns=[c for c in wide if c in rows])  # attributes that are called as a measure
    return rows.merge(wide.reset_index(), on="qid", how="left", validate="one_to_one")


def outcomes(
    found: pd.DataFrame,
    answers: pd.DataFrame,
    verdicts: pd.DataFrame,
    values: pd.DataFrame,
    sampled: pd.DataFrame | None,
    unjudged: Collection[str] = (),
) -> pd.DataFrame:
    """`found` (of `retrieved`) with answer, label and statuses, and a column per answer measure.

    Columns of the answers that the data model does not name, such as the rounds of an iterative system, are
    further columns, unless the topics have one of that name.
    unjudged: topics that have no reference answer to judge by; their judge_status is "no reference".
    Where topics were sampled (`sampled`: [qid, stratum, judged]), stratum and judged, too. Topics that were not
    answered have the statuses NOT_SAMPLED.
    """
    renamed = answers.rename(columns={"status": "answer_status", "error": "answer_error"})
    schema = SCHEMAS["answers"]
    known = {*schema.columns, *schema.optional, *RESERVED, *found.columns}
    own = [name for name in answers.columns if name not in known]
    rows = found.merge(
        renamed[["qid", "answer", "answer_status", "answer_error", *own]], on="qid", how="left", validate="one_to_one"
    )
    rows["answer_status"] = rows["answer_status"].fillna(NOT_SAMPLED)
    rows = with_values(rows, values)
    keep = [c for c in ("qid", "label", "status", "raw", "reason") if c in verdicts] + other_labels(verdicts)
    rows = rows.merge(
        verdicts[keep].rename(columns={"status": "judge_status", "raw": "judge_raw"}),
        on="qid",
        how="left",
        validate="one_to_one",
    )
    lacking = rows["judge_status"].isna() & rows["qid"].isin(unjudged)
    rows.loc[lacking, "judge_status"] = NO_REFERENCE
    if sampled is None:
        return rows
    rows["judge_status"] = rows["judge_status"].fillna(NOT_SAMPLED)
    rows = rows.merge(sampled, on="qid", how="left", validate="one_to_one")
    rows["judged"] = rows["judged"].eq(True)
    return rows.fillna({"stratum": 0})
