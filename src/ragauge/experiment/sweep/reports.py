"""Reports of ended sweeps, from their folder or from MLflow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ragauge import track
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.jobs import Jobs
from ragauge.contract.output_files import refuse_foreign
from ragauge.experiment.sweep.jobs import experiments, find, load
from ragauge.findings.pooling import pooled
from ragauge.show.drawing import save
from ragauge.show.html import REPORT_MARK, write_report

_RUN_ID = re.compile(r"[0-9a-f]{32}")


def found(source: str, tracking_uri: str | None = None) -> list[Jobs]:
    """The groups of comparable jobs in `source` (see `write`); DataError without a finished job."""
    located = _located(source, tracking_uri)
    return located if isinstance(located, list) else _loaded(located)


def _located(source: str, tracking_uri: str | None) -> Path | list[Jobs]:
    if Path(source).is_dir():
        return Path(source).absolute()
    if not _RUN_ID.fullmatch(source):
        raise ConfigError(f"{source} is neither a folder nor an MLflow run id (32 characters of 0-9 and a-f)")
    return find(source, track.tracking_uri(tracking_uri))


def _loaded(folder: Path) -> list[Jobs]:
    loaded = load(folder)
    if not loaded:
        raise DataError(f"{folder}: no job of this sweep finished, so there is nothing to report")
    return loaded


def write(source: str, tracking_uri: str | None = None, figures: Sequence[str] = (), force: bool = False) -> list[Path]:
    """Writes the report of each experiment in the source; returns the paths.

    figures: formats (png, svg, pdf) in which the figures are written, too, into a folder beside the report
    that is named after it; their paths are among those returned.

    `source` is a sweep's folder, which the report goes into, or the id of the MLflow run of a sweep or of a
    job. Where the run's sweep has no folder on this machine, the report is made of what MLflow holds and goes
    into the working directory. ConfigError where a file stands in the report's place that ragauge did not write, or
    figures that have no report beside them, and force is not set.
    """
    located = _located(source, tracking_uri)
    if isinstance(located, list):
        path = Path.cwd() / f"report-{located[0].sweep_id}.html"
        return _written(located, path, figures, force)
    loaded = experiments(_loaded(located))
    written = []
    for groups in loaded:
        experiment = re.sub(r"[^\w.-]+", "_", groups[0].experiment)
        path = located / ("report.html" if len(loaded) == 1 else f"report-{experiment}.html")
        written += _written(groups, path, figures, force)
    return written


def _written(groups: Sequence[Jobs], path: Path, figures: Sequence[str], force: bool) -> list[Path]:
    refuse_foreign(path, REPORT_MARK, force)
    drawings = path.with_name(f"{path.stem}-figures")
    theirs = next((file for kind in figures for file in sorted(drawings.rglob(f"*.{kind}"))), None)
    if theirs is not None and not path.exists() and not force:
        raise ConfigError(f"{theirs} is there, and no {path.name} beside its folder: move the folder away, or --force")
    pages = [pooled(jobs).page for jobs in groups]
    write_report(pages, path)
    written = [path]
    for number, page in enumerate(pages, 1):
        folder = drawings / (f"group-{number}" if len(pages) > 1 else "")
        for name, drawn in page.figures.items():
            for kind in figures:
                written.append(folder / f"{name}.{kind}")
                save(drawn, written[-1])
    return written
