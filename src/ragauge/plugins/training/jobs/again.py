"""Reruns a logged training: `ragauge train rerun=<run id>` as arguments that Hydra composes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragauge import track
from ragauge.contract.errors import ConfigError
from ragauge.contract.provenance import PACKAGES_FILE, read_packages
from ragauge.experiment.setup.config import logged_yaml
from ragauge.experiment.setup.trust import refuse_foreign
from ragauge.plugins.rerun.differences import environment_differences, tell

_CONFIG = Path(__file__).parents[1] / "conf" / "train.yaml"
# Where the run wrote, whom it trusted, and under which name its model is known: the user's own.
_HERE = ("store", "trust", "register")


@contextmanager
def prepared(arguments: Sequence[str], conf: Path) -> Iterator[list[str]]:
    """Arguments that make Hydra run the training named by `rerun=<run id>` again.

    Values can be overridden, as in trainer.epochs=3, and config groups cannot. Tells on stderr what differs
    from today. ConfigError where the run is unknown, is no training, or names code that is not vouched for here.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    ids = [a.removeprefix("rerun=") for a in arguments if a.startswith("rerun=")]
    rest = [a for a in arguments if not a.startswith("rerun=")]
    if len(ids) != 1:
        raise ConfigError("rerun: give the id of one MLflow run")
    given = [a for a in rest if not a.startswith("-") and "=" in a]
    overrides = OverridesParser.create().parse_overrides(given)
    values: dict[str, Any] = {str(o.key_or_group): o.value() for o in overrides if not o.is_sweep_override()}
    today: Any = OmegaConf.to_container(OmegaConf.load(_CONFIG), resolve=False)
    uri = track.tracking_uri(values.get("tracking.uri") or today["tracking"]["uri"])
    reader = track.Reader(uri)
    run = reader.run(ids[0])
    if run.tags.get("role") != "training":
        raise ConfigError(f"rerun={run.run_id}: this run is no training; without the word train: a job or a sweep")
    files = reader.files(run.run_id, "config")
    if "config.yaml" not in files:
        raise ConfigError(f"rerun={run.run_id}: it ended before its configuration was logged")
    config = logged_yaml(files["config.yaml"], f"rerun={run.run_id}: its config/config.yaml")
    if not isinstance(config, dict) or "defaults" in config or "hydra" in config:
        raise ConfigError(f"rerun={run.run_id}: its config/config.yaml is no configuration of a training")
    registered = config.get("register")
    for key in _HERE:
        config.pop(key, None)
    if isinstance(config.get("tracking"), dict):
        config["tracking"].pop("uri", None)
    if values.get("trust") is not True:
        refuse_foreign(run.run_id, [config], list(values), conf)
    told = environment_differences(run.tags, read_packages(files.get(PACKAGES_FILE, "")))
    if registered and "register" not in values:
        told.append("the model is not registered again; to do so: register=<name>")
    tell(f"rerun of training {run.run_id}", told)
    primary = {
        "defaults": ["train_schema", "hydra/train", "_self_"],
        **config,
        "store": today["store"],
        "tracking": {**config.get("tracking", {}), "uri": today["tracking"]["uri"]},
    }
    with tempfile.TemporaryDirectory(prefix="ragauge-rerun-") as scratch:
        shutil.copytree(conf, scratch, dirs_exist_ok=True)
        OmegaConf.save(OmegaConf.create(primary), Path(scratch) / "retrain.yaml")
        yield ["--config-path", scratch, "--config-name", "retrain", *rest]
