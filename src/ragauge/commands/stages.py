"""The command `ragauge stages`: a job's stages with their digests, and whether each is stored."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragauge.commands.conf import conf_folder, of_base, quoted, search_path, take_config_options
from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError
from ragauge.contract.visible import table

_DIGEST = 12  # characters that are shown


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge stages",
        description="Prints the plan of a job: its stages, the digest of each one's output, and whether it is "
        "stored. Nothing is made and no LLM is asked; a digest that depends on the output of another stage is known "
        "after that stage.",
    )
    parser.add_argument("overrides", nargs="*", help="as for a job, such as retriever=sim n_tokens=300")
    take_config_options(parser)
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    # After the arguments: they import for seconds.
    from ragauge.experiment.request import JobFolder, Request
    from ragauge.experiment.stages.components import make_pipeline

    cfg = composed(given.overrides)
    pipeline = make_pipeline(Request(cfg, JobFolder(Path.cwd(), None, 0, {}, tuple(given.overrides))))
    rows = [("stage", "version", "digest", "stored")]
    for stage in pipeline.lines():
        version = "" if stage.key is None else str(stage.key.version)
        digest = "" if stage.key is None else stage.key.digest[:_DIGEST]
        waits = "" if stage.waits_for is None else f"known after {stage.waits_for}"
        stored = {True: "yes", False: "no", None: "never, it is made from others in no time"}[stage.stored]
        rows.append((stage.name, version, digest or waits, stored))
    print(table(rows))
    return 0


def composed(overrides: Sequence[str]) -> Any:
    """A composed job config; ConfigError for invalid arguments."""
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from ragauge.commands.conf import explain
    from ragauge.experiment.setup import config

    config.register()
    try:
        with initialize_config_dir(str(conf_folder().resolve()), version_base="1.3"):
            cfg = compose("config", overrides=[*of_base(quoted(overrides)), *search_path()])
            config.settle(cfg)
            return cfg
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error)) from None
