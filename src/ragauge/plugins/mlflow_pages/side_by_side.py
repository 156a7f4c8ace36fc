"""The best two systems of a sweep side by side on MLflow's page of evaluation runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ragauge.contract.finding import Finding, Found, Founds, Section, Shown, Text
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.jobs import Jobs
from ragauge.contract.record import JobRecord
from ragauge.plugins.mlflow_pages.finding import PAGE, RUN_TAG, source_of, write_evaluation
from ragauge.plugins.mlflow_pages.topics import Answered, Feedback, evaluation_metrics, topics_of
from ragauge.track import absolute_uri, recorded_uri
from ragauge.track.connection import at, quiet, reachable
from ragauge.track.views import where_text

AGREES = "agrees"  # feedback on both systems' answers to a topic


@dataclass(frozen=True)
class Pair:
    """Two systems, the better one first, their budget, and how to open the page, or why there is none."""

    systems: tuple[str, str]
    n_tokens: int
    where: str
    missing: str = ""


class SideBySide(Finding):
    """Shows the first two systems of the leaderboard side by side, question by question."""

    name = "side_by_side"
    after = "topics"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """A `Pair`; None if fewer than two systems have, or may get, an evaluation run.

        At the end of a sweep the two jobs get their evaluation runs where they have none. They are at the budget of the
        leaderboard, or at the one that `tracking.evaluation` names.
        """
        rows = zip(jobs.systems, jobs.records, strict=True)
        of_system = {
            system: record
            for system, record in rows
            if RUN_TAG in record.added or (jobs.tracked and PAGE in record.added)
            if record.n_tokens == (record.added.get(PAGE, {}).get("n_tokens") or jobs.n_tokens)
        }
        best = [system for system in found["leaderboard"].frame["system"] if system in of_system][:2]
        if len(best) < 2:
            return None
        pair = [(system, of_system[system]) for system in best]
        first, n_tokens = pair[0][1], pair[0][1].n_tokens
        try:
            if not all(RUN_TAG in record.added for _, record in pair):
                _write(jobs, pair)
        except Exception as error:  # the sweep's results do not hang on a page
            told = next(iter(str(error).splitlines()), type(error).__name__)
            return Found(Pair((best[0], best[1]), n_tokens, "", told))
        page = comparison_page(first.experiment_id, *(record.added[RUN_TAG] for _, record in pair))
        return Found(Pair((best[0], best[1]), n_tokens, where_text(first.tracking_uri, page)))

    def show(self, jobs: Jobs, value: Pair, found: Founds) -> Shown:
        """Prints the address on the terminal and in the report."""
        first, second = value.systems
        if value.missing:
            return Shown(lines=[f"MLflow has no page of the answers of {first} and {second}: {value.missing}"])
        told = (
            f"MLflow shows the answers of {first} and {second} at N = {value.n_tokens} tokens side by side, a row per "
            "question. Sorted by `agrees`, questions with answers of different classes come first; each value has "
            "its reason under the mouse. The page's averages leave out missing values and have no intervals."
        )
        return Shown(
            [Section("Answers side by side", [Text(told), Text(f"`{value.where}`", page=_address(value.where))])],
            [f"{first} and {second}, question by question (sort by agrees): {value.where.removeprefix('MLflow UI: ')}"],
        )


def _write(jobs: Jobs, pair: Sequence[tuple[str, JobRecord]]) -> None:
    """Writes the missing evaluation runs of two jobs, and records their ids in the jobs' records, also on disk."""
    by_job = dict(list(jobs.outcomes.groupby(["system", "n_tokens"])))
    rows = [by_job[name, record.n_tokens] for name, record in pair]
    agreed = agreeing(rows[0], rows[1], [name for name, _ in pair])
    for (_, record), outcomes in zip(pair, rows, strict=True):
        if RUN_TAG in record.added:
            continue
        page = record.added[PAGE]
        job = Answered.stored(record, page, outcomes, jobs.answer_measures)
        topics = [
            replace(topic, feedback={AGREES: agreed[topic.qid], **topic.feedback}) if topic.qid in agreed else topic
            for topic in topics_of(job, most=page["topics"])
        ]
        values = evaluation_metrics(record.metrics, outcomes, jobs.answer_measures)
        uri = absolute_uri(recorded_uri(record.tracking_uri))
        with quiet(), at(uri) as client, reachable(uri):
            given = client, record.experiment_id, record.run_id, topics
            record.added[RUN_TAG] = write_evaluation(*given, source_of(*page["judge"]), values, again=False)
        record.write()


def agreeing(first: pd.DataFrame, second: pd.DataFrame, names: Sequence[str]) -> dict[str, Feedback]:
    """Whether two systems' answers have the same class, by qid; unjudged answers agree if equal.

    A topic that neither answered is left out.
    The name of the feedback comes first in the alphabet: MLflow's page shows the first few, and sorts by those.
    """
    found = {}
    both = first.merge(second, on="qid", suffixes=("", "_other"))
    for row in both.to_dict("records"):
        if pd.isna(row["answer"]) and pd.isna(row["answer_other"]):
            continue
        told = [_said(row["label"], row["answer"]), _said(row["label_other"], row["answer_other"])]
        why = "; ".join(f"{name}: {said}" for name, said in zip(names, told, strict=True))
        found[str(row["qid"])] = Feedback(told[0] == told[1], why)
    return found


def _said(label: Any, answer: Any) -> str:
    """The class of an answer; without a verdict the answer, or that it is missing."""
    if pd.isna(label):
        return "no answer" if pd.isna(answer) else str(answer)
    return JUDGE_CLASSES[int(label)]


def _address(where: str) -> str:
    """The address at the end of `where`."""
    return where[where.index("http") :]


def comparison_page(experiment_id: str, run_id: str, other: str) -> str:
    """The address of MLflow's comparison of two evaluation runs, under the server's address."""
    return f"#/experiments/{experiment_id}/evaluation-runs?selectedRunUuid={run_id}&compareToRunUuid={other}"
