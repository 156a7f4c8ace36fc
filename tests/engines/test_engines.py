"""Blocks in order, config values, and jobs whose every result is that of `engine=local`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from blocks_engine import BlocksEngine
from ragauge.contract.engine import Engine, in_blocks, slices
from ragauge.contract.errors import ConfigError
from ragauge.engines import LocalEngine, RayEngine
from ragauge.engines import ray as of_ray
from ragauge.experiment.stages.running import StageRunner
from ragauge.retrieval.rerankers import CrossEncoderReranker
from small_pipeline import SmallPipelines
from tiny_cross_encoder import write_cross_encoder


def test_local_work_is_one_block_and_made_as_it_is_taken() -> None:
    assert [len(block) for block in in_blocks("abcde", LocalEngine())] == [5]
    read: list[int] = []

    def blocks() -> Iterator[int]:
        for i in itertools.count():
            read.append(i)
            yield i

    found = LocalEngine().map(lambda block: 2 * block, blocks())
    assert [next(found), next(found)] == [0, 2]
    assert read == [0, 1]


def test_blocks_cover_every_row_once_and_there_is_one_of_none() -> None:
    engine = BlocksEngine(block_rows=2)
    assert list(in_blocks([1, 2, 3, 4, 5], engine)) == [[1, 2], [3, 4], [5]]
    assert list(in_blocks([], engine)) == [[]]
    assert list(slices(4, engine)) == [slice(0, 2), slice(2, 4)]


FRAMES = ("chunks", "run", "layouts", "prefixes", "scores", "part_scores", "answers", "verdicts")


def job(small: SmallPipelines, engine: Engine, **others: Any) -> StageRunner:
    return small(engine=engine, **others)


def test_a_job_by_blocks_and_shards_is_the_same_job(small: SmallPipelines, tmp_path: Any) -> None:
    cross = CrossEncoderReranker(str(write_cross_encoder(tmp_path / "cross")), depth=3, backend="torch")
    engine = BlocksEngine()
    source = small.source()
    here = SmallPipelines(tmp_path / "here", small.embedder)(reranker=cross, dataset=source)
    there = SmallPipelines(tmp_path / "there", small.embedder)(reranker=cross, dataset=source, engine=engine)
    for name in FRAMES:
        own, other = here.frame(name), there.frame(name)
        columns = [c for c in own if c not in ("seconds", "score")]
        pd.testing.assert_frame_equal(own[columns], other[columns])
        if "score" in own:  # which pairs a cross-encoder scores together moves a score by float noise
            np.testing.assert_allclose(own["score"], other["score"], atol=1e-6)
    for stage in ("dataset", "chunks", "index", "run", "reranked"):
        assert here.key(stage) == there.key(stage)
    assert set(engine.mapped) == {"_Chunking", "_Embedding", "ExactShard", "_PairScores", "_Scores"}
    assert min(engine.mapped.values()) > 1
    assert here.tools.counted == there.tools.counted


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
    monkeypatch.setattr(of_ray, "find_spec", lambda name: name)  # it need not be installed
    conf = Path(__file__).resolve().parents[2] / "conf" / "engine" / "ray.yaml"
    config: Any = OmegaConf.to_container(OmegaConf.load(conf))
    assert config.pop("_target_") == "ragauge.engines.RayEngine"
    assert config == asdict(RayEngine())


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_ray, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'ragauge\[ray\]', or engine=local"):
        RayEngine()
