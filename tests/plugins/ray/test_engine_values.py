"""What `engine=ray` may be told."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from ragauge.contract import extras
from ragauge.contract.errors import ConfigError
from ragauge.plugins.ray.engine import RayEngine


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"shards": 0}, "engine.shards=0: allowed are integers from 1"),
        ({"block_rows": 0}, "engine.block_rows=0: allowed are integers from 1"),
        ({"num_cpus": 0}, "engine.num_cpus=0: allowed are integers from 1, and null (all cores of this"),
        ({"workers": 0}, "engine.workers=0: allowed are integers from 1, and null (as many as there is room"),
        ({"worker_cpus": 0}, "engine.worker_cpus=0: allowed are numbers above 0"),
        ({"worker_gpus": -1}, "engine.worker_gpus=-1: allowed are numbers from 0"),
        ({"retries": -1}, "engine.retries=-1: allowed are integers from 0"),
        ({"object_store_mb": 1}, "engine.object_store_mb=1: allowed are integers from 80"),
        ({"address": " "}, "engine.address=' ': allowed are auto, host:port of a cluster's head, and null"),
        ({"address": "ray://head:10001"}, "engine.address='ray://head:10001': allowed are auto, host:port"),
    ],
    ids=str,
)
def test_a_bad_value_is_told_in_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as told:
        RayEngine(**given)
    assert str(told.value).startswith(says)
    assert "\n" not in str(told.value)


def test_the_options_are_those_of_the_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: name)  # it need not be installed
    conf = Path(__file__).resolve().parents[3] / "src" / "ragauge" / "plugins" / "ray" / "conf" / "engine" / "ray.yaml"
    config: Any = OmegaConf.to_container(OmegaConf.load(conf))
    assert config.pop("_target_") == "ragauge.plugins.ray.engine.RayEngine"
    assert config == asdict(RayEngine())


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'ragauge\[ray\]', or engine=local"):
        RayEngine()
