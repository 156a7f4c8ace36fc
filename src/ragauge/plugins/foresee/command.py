"""The command `ragauge foresee`: runs a job's config with a predictor, without judge, findings and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragauge.contract.errors import ConfigError

if TYPE_CHECKING:
    from omegaconf import DictConfig

ABOUT = "foresees the classes of unjudged answers, from a predictor without evidence"

_HELP = """\
usage: ragauge foresee predictor=<model> key=value ...

Foresees the judge's class of every answer of a window, without a judge and without evidence. The predictor is
models:/<name>/<version>, runs:/<run id>/predictor, or its file (predictor.json). Keys are those of a job; the window is
one of these:

  experiment=recorded recorded.path=today.jsonl                   answers that were recorded
  experiment=mlflow_traces dataset.experiment=helpdesk dataset.since=1d   MLflow's traces
  retriever=service llm=service service.url=http://localhost:8000/ask dataset=jsonl dataset.docs=corpus.jsonl \\
    dataset.topics=questions.jsonl                                a service that is asked now

answers=[qpp] is the default: it computes what a predictor without evidence reads. docs/foresee.md has an example.
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    from ragauge.commands.main import run_hydra

    if {"-h", "--help"} & set(arguments):
        print(_HELP, end="")
        return 0
    return run_hydra("foresee", run_window, arguments, lambda _: None)


def run_window(cfg: DictConfig) -> None:
    """Foresees one window, and sets the exit code."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from ragauge.commands.main import set_exit_code
    from ragauge.contract import interruption
    from ragauge.experiment.request import JobFolder
    from ragauge.plugins.foresee.window import execute

    hydra = HydraConfig.get()
    if hydra.mode == RunMode.MULTIRUN:
        raise ConfigError("ragauge foresee looks at one window: run it without -m")
    choices = {str(k): str(v) for k, v in hydra.runtime.choices.items() if "/" not in str(k)}
    folder = JobFolder(Path(hydra.runtime.output_dir), None, 0, choices, tuple(hydra.overrides.task))
    with interruption.working():
        set_exit_code(execute(cfg, folder), folder.path)
