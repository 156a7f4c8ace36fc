"""Runs one job, or with -m a sweep: `python run.py --help`."""

import sys

import hydra
from omegaconf import DictConfig

from ragauge.commands import main as cli
from ragauge.experiment import config

config.register()


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def run(cfg: DictConfig) -> None:
    cli.run_job(cfg)


if __name__ == "__main__":
    sys.exit(cli.main(run))
