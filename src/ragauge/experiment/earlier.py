"""Reads verdicts of an earlier run on the same topics, for estimates from a judged sample (`judge.earlier`)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragauge import track
from ragauge.contract.errors import ConfigError, DataError, RagaugeError
from ragauge.contract.job_files import OUTCOMES_FILE, read_table
from ragauge.contract.settings import Settings


def earlier_labels(settings: Settings, topics: pd.DataFrame) -> pd.Series | None:
    """The classes 1..5 of the topics in the run of `judge.earlier` (Int8 by qid); None without such a run.

    Topics without a verdict there are left out. Raises ConfigError where no sample is judged.
    Raises DataError where the run is no job, has no verdicts, shares no topic, or has another question under a qid. A
    run that was itself judged on a sample is refused, too: its seed may have drawn the topics that are judged now.
    """
    source = settings.judge.get("earlier")
    if source is None:
        return None
    key = f"judge.earlier={source}"
    if settings.judge.get("sample") is None and settings.llm.get("sample") is None:
        raise ConfigError(f"{key} serves the estimates of a sample: give judge.sample or llm.sample, or take it out")
    try:
        rows = _outcomes(str(source), track.tracking_uri(settings.tracking.uri))
    except RagaugeError as error:
        raise type(error)(f"{key}: {error}") from None
    if "label" not in rows or rows["label"].isna().all():
        raise DataError(f"{key}: this run has no verdicts")
    if "judged" in rows and not rows["judged"].astype(bool).all():
        judged = int(rows["judged"].astype(bool).sum())
        raise DataError(
            f"{key}: this run judged {judged} of {len(rows)} topics; allowed is one that judged all: a shared "
            "sample has no verdicts on the other topics"
        )
    both = topics[["qid", "query"]].merge(rows[["qid", "query", "label"]], on="qid", suffixes=("", "_earlier"))
    if both.empty:
        raise DataError(f"{key}: this run has none of the {len(topics)} topics")
    other = both[both["query"] != both["query_earlier"]]
    if len(other):
        row = other.iloc[0]
        raise DataError(
            f"{key}: qid {row['qid']!r} is another topic there, with the question "
            f"{str(row['query_earlier'])[:60]!r} in place of {str(row['query'])[:60]!r}"
        )
    return both.set_index("qid")["label"].dropna().astype("Int8")


def _outcomes(source: str, uri: str) -> pd.DataFrame:
    """The questions of the job in a folder or of an MLflow run, with their labels."""
    folder = Path(source)
    if folder.is_dir():
        if not (folder / OUTCOMES_FILE).is_file():
            raise DataError(f"no {OUTCOMES_FILE} in it; allowed is the folder of one job that was judged")
        return read_table(folder, OUTCOMES_FILE)
    reader = track.Reader(track.absolute_uri(uri))
    run = reader.run(source)
    if run.tags.get("role") != "job":
        raise DataError("this run is no job's; allowed is the folder or the MLflow run of one job")
    return reader.table(run.run_id, "per_question.json").astype({"qid": "str"})
