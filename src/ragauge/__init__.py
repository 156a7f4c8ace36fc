"""ragauge: measures retrieval, generation, and how the first predicts the second.

`run`, `sweep` and `load` are the command line for Python (docs/library.md). Importing this loads
nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract import __version__
from ragauge.contract.errors import (
    ConfigError,
    DataError,
    GateError,
    MissingError,
    RagaugeError,
    TrackingError,
)

if TYPE_CHECKING:
    from ragauge.experiment.results import JobResult, SweepResult

__all__ = [
    "ConfigError",
    "DataError",
    "GateError",
    "MissingError",
    "RagaugeError",
    "TrackingError",
    "__version__",
    "evaluate",
    "load",
    "run",
    "sweep",
]


def __dir__() -> list[str]:
    return list(__all__)


def run(
    overrides: Sequence[str] | Mapping[str, Any] = (), *, config_dir: str | Path | None = None, **settings: Any
) -> JobResult:
    """Runs one job as `ragauge <overrides>` does, and returns its frames, metrics and MLflow run.

    ragauge.run(retriever="bm25", n_tokens=300): values by key. overrides: texts as on the command line,
    ["retriever=bm25", "n_tokens=300"], or a dict for keys with dots, {"llm.chat.model": "m"}. retriever and llm may be
    functions: retriever(question) returns texts or docnos, llm(prompt) the answer (docs/library.md). config_dir: a
    folder with further config groups, as `--config-dir`. Relative paths mean the working directory; the job's
    folder is outputs/<date>/<time> there. Prints nothing but warnings, on stderr; the log is run.log in the folder.

    Raises ConfigError for a bad configuration, DataError for bad data, GateError where a gate is not met, and
    MissingError where more answers or verdicts are missing than `max_missing_share`. Raises TrackingError where MLflow
    stops answering, and RagaugeError for an unforeseen failure.
    """
    from ragauge.commands import library

    return library.run(overrides, config_dir, settings)


def sweep(
    overrides: Sequence[str] | Mapping[str, Any] = (), *, config_dir: str | Path | None = None, **settings: Any
) -> SweepResult:
    """Runs a sweep as `ragauge -m <overrides>` does, and returns its jobs and what was pooled over them.

    ragauge.sweep(retriever=["bm25", "sim"], n_tokens=range(100, 400, 100)): the values that jobs take in turn; a
    value that is a list stands in a list of its own, answers=[["em", "f1"]]. overrides: as of `run`. A job that
    fails is in `failed` of what is returned, and the others are pooled; the errors of `run` are raised where
    nothing could be.
    """
    from ragauge.commands import library

    return library.sweep(overrides, config_dir, settings)


def evaluate(
    samples: Any,
    metrics: Sequence[str] = ("em", "f1"),
    *,
    judge: str = "none",
    app: Callable[[str], Any] | None = None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    **settings: Any,
) -> JobResult | SweepResult:
    """Measures questions, contexts and answers that another system gave (docs/recorded.md).

    samples: a list of dicts, a DataFrame, a RAGAS or DeepEval dataset, or the path of a JSON Lines, CSV or Parquet
    file, with the names of docs/recorded.md. metrics: answer measures (docs/measures.md). judge: the judge that puts
    answers into the five classes, such as "lexical" or "openai". app: a function,
    asynchronous or not, that is asked the questions of rows without an answer. It returns the answer,
    (answer, contexts), or a dict of a row's keys. Other keys as of `run`.

    Returns a job, or a sweep where the rows name several systems. Raises what `run` raises.
    """
    from ragauge.commands import library

    return library.evaluate(samples, metrics, judge, app, overrides, settings)


def load(run_id: str, tracking_uri: str | None = None) -> JobResult | SweepResult:
    """The job or the sweep of an MLflow run, as `run` and `sweep` return it.

    run_id: the id of the run of a job or of a sweep, or its first characters. tracking_uri: MLflow's address; without
    it MLFLOW_TRACKING_URI, else mlruns/ in the working directory. Frames come from the store where it is on this
    machine, else from MLflow, which holds less (docs/library.md).

    Raises ConfigError where MLflow or the run is not there, DataError where the run is of something else.
    """
    from ragauge import track
    from ragauge.experiment import results

    with track.aside():
        return results.load(run_id, tracking_uri)
