"""Reports of sweeps that have ended: from their folder, or from what MLflow holds of them."""

from __future__ import annotations

import re
from pathlib import Path

from ragauge import report, track
from ragauge.contract.errors import ConfigError, DataError
from ragauge.experiment import logged, sweeps
from ragauge.experiment.pooled import contents

_RUN_ID = re.compile(r"[0-9a-f]{32}")


def write(source: str, tracking_uri: str | None = None) -> list[Path]:
    """Writes the report and returns its path; of a folder with several experiments, one for each.

    The groups of a sweep whose jobs are not comparable stand in one report, one below the other.
    `source` is a sweep's folder, which the report goes into, or the id of the MLflow run of a sweep or of a
    job. Where the run's sweep has no folder on this machine, the report is made of what MLflow holds and goes
    into the working directory.
    """
    found: Path | list[sweeps.Sweep] = Path(source).absolute()
    if not Path(source).is_dir():
        if not _RUN_ID.fullmatch(source):
            raise ConfigError(
                f"{source} is neither a folder nor an MLflow run id (32 characters of 0-9 and a-f)"
            )
        found = logged.find(source, track.tracking_uri(tracking_uri))
    if isinstance(found, list):
        path = Path.cwd() / f"report-{found[0].sweep_id}.html"
        report.write_report(contents(found), path)
        return [path]
    loaded = sweeps.experiments(sweeps.load(found))
    if not loaded:
        raise DataError(f"{found}: no job of this sweep finished, so there is nothing to report")
    written = []
    for groups in loaded:
        experiment = re.sub(r"[^\w.-]+", "_", groups[0].experiment)
        path = found / ("report.html" if len(loaded) == 1 else f"report-{experiment}.html")
        report.write_report(contents(groups), path)
        written.append(path)
    return written
