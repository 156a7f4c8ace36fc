"""Logs and stores a job's numbers after its verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ragauge import track
from ragauge.contract import comparable, outcomes
from ragauge.contract.job_files import FRAMES_TAG, OUTCOMES_FILE
from ragauge.contract.output_files import replacing
from ragauge.experiment.measured import MeasuredJob
from ragauge.experiment.measured_by import measured_by
from ragauge.findings.topics import write_details

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

# Frames that are read back as they were stored; contexts are cut from layouts and prefixes.
_STORED = (
    "topics", "evidence", "chunks", "run", "layouts", "prefixes", "scores", "answers", "verdicts",
)  # fmt: skip


def log_verdicts(job: MeasuredJob, run: track.Run) -> None:
    """Logs the verdicts' metrics, writes the outcomes into the job's folder, and tags the places of its frames."""
    job.find_out("verdicts", run)
    given = {*map(str, [*job.frame("topics"), *job.frame("answers")]), *(info.name for info in job.answer_measures)}
    outcomes.check(job.outcomes, given)
    with replacing(job.folder.path / OUTCOMES_FILE) as draft:
        job.outcomes.to_parquet(draft, index=False)
    write_details(job.frame("answer_values"), job.folder.path)
    run.tag(comparable.as_tag(measured_by(job.pipeline)) | frames_tag(job.pipeline, job.folder.path))


def frames_tag(pipeline: Pipeline, folder: Path) -> dict[str, str]:
    """The tag with the places of a job's frames."""
    found = {
        "folder": str(folder.absolute()),
        "store": str(pipeline.store.root.absolute()),
        "frames": pipeline.entries_of(_STORED),
    }
    return {FRAMES_TAG: json.dumps(found)}
