"""Compares the metrics of a run with its repetition's: logged as the latter's table, with a summary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract.groups import CALLS
from ragauge.contract.progress import progress

if TYPE_CHECKING:
    from ragauge.contract.jobs import Jobs

TABLE = "rerun.json"
_MAX_JOBS = 3  # jobs of a sweep whose metrics are told where they are not equal
# Metrics of how the work was done, not of what came out.
_EFFORT = re.compile(
    rf"({'|'.join(CALLS)})(llm_calls(_cached)?|llm_usage_unknown|llm_cut|llm_thoughts|prompt_tokens|completion_tokens|cost_usd)"
    r"|seconds_.*|latency_.*|cost_usd_per_topic|stages_made|system/.*"
)
_EFFORT_TOLD = ("seconds_total", "seconds_jobs", "llm_calls", "judge_llm_calls", "cost_usd", "judge_cost_usd")


@dataclass(frozen=True)
class SweepOrigin:
    """The logged jobs that a sweep's jobs repeat; `run_id` is the sweep's run, if that was asked for.

    records: those of the new jobs. group: the name of their group; "" where the sweep has no other.
    """

    records: Sequence[Mapping[str, Any]]
    run_id: str | None
    group: str

    @property
    def tags(self) -> dict[str, str]:
        """The tag of the sweep's run that names the old one."""
        return {"rerun_of": self.run_id} if self.run_id else {}

    def compared(self, tracker: track.Tracker, run: track.Run) -> list[str]:
        """Logs every job's and the sweep's `run` metrics against the old ones; returns the lines to print."""
        lines = ["\nagainst the runs that were repeated:", log_job_comparisons(tracker, self.records)]
        if self.run_id and self.group:
            return [*lines, "pooled: not compared, since one group of the repeated run has become several"]
        if self.run_id:
            lines.append(f"pooled: {summary(log_comparison(track.Reader(tracker.uri), self.run_id, run))}")
        return lines


def of_sweep(jobs: Jobs) -> SweepOrigin:
    """The jobs that a sweep's jobs repeat; at least some are reruns."""
    again = [record for record in jobs.records if "rerun" in record]
    return SweepOrigin(again, again[0]["rerun"]["sweep"], jobs.group)


def log_comparison(reader: track.Reader, old: str, run: track.Run) -> pd.DataFrame:
    """The metrics of an old run against those of its repetition, logged as the latter's table."""
    run.flush()
    comparison = compare(reader.metrics(old), reader.metrics(run.run_id))
    run.table(comparison, TABLE)
    return comparison


def log_job_comparisons(tracker: track.Tracker, records: Sequence[Mapping[str, Any]]) -> str:
    """Logs the comparison of every rerun job; returns how many are equal, and which are not."""
    unequal = []
    reader = track.Reader(tracker.uri)
    with progress(len(records), "comparing old and new", "job") as bar:
        for record in records:
            old = record["rerun"]["run_id"]
            with tracker.resume(record["run_id"]) as run:
                comparison = log_comparison(reader, old, run)
            if len(_unequal(comparison)):
                unequal.append(f"{record['name']}, rerun of {old}: {summary(comparison)}")
            bar.update()
    equal = f"{len(records) - len(unequal)} of {len(records)} jobs equal to the last bit in every metric"
    more = len(unequal) - _MAX_JOBS
    return "\n".join([equal, *unequal[:_MAX_JOBS], *([f"{more} more: see {TABLE} of each run"] if more > 0 else [])])


def compare(old: Mapping[str, float], new: Mapping[str, float]) -> pd.DataFrame:
    """Frame [metric, old, new, difference], a row per metric of either; NaN for a missing value."""
    rows = pd.DataFrame({"old": pd.Series(old, dtype=float), "new": pd.Series(new, dtype=float)})
    rows = rows.loc[list(dict.fromkeys([*old, *new]))].assign(difference=rows["new"] - rows["old"])
    return rows.rename_axis("metric").reset_index()


def summary(comparison: pd.DataFrame) -> str:
    """The number of equal metrics, the unequal ones, and separately those of time and cost."""
    scores, unequal = _scores(comparison), _unequal(comparison)
    text = f"{len(scores) - len(unequal)} of {len(scores)} metrics equal to the last bit"
    if len(unequal):
        cells = {
            "metric": unequal["metric"].tolist(),
            **{name: [_number(v) for v in unequal[name]] for name in ("old", "new")},
            "difference": [_number(v, "+.3g") for v in unequal["difference"]],
        }
        text += "\n" + pd.DataFrame(cells).to_string(index=False)
    took = comparison[comparison["metric"].isin(_EFFORT_TOLD) & (comparison["old"] != comparison["new"])]
    changes = [
        f"{metric} {_number(old, '.4g')} → {_number(new, '.4g')}"
        for metric, old, new in zip(took["metric"], took["old"], took["new"], strict=True)
    ]
    return text + (f"\n  took: {', '.join(changes)}" if changes else "")


def _scores(comparison: pd.DataFrame) -> pd.DataFrame:
    return comparison[[_EFFORT.fullmatch(name) is None for name in comparison["metric"]]]


def _unequal(comparison: pd.DataFrame) -> pd.DataFrame:
    scores = _scores(comparison)
    return scores[scores["old"] != scores["new"]]


def _number(value: float, form: str = ".8g") -> str:
    return "none" if pd.isna(value) else format(value, form)
