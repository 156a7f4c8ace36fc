"""Blocks in order, and jobs by blocks whose every result is that of `engine=local`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from blocks_engine import BlocksEngine
from ragauge.contract.engine import Engine, LocalEngine, in_blocks, slices
from ragauge.experiment.stages.running import StageRunner
from small_pipeline import SmallPipelines


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
    engine = BlocksEngine()
    source = small.source()
    here = SmallPipelines(tmp_path / "here", small.embedder)(dataset=source)
    there = SmallPipelines(tmp_path / "there", small.embedder)(dataset=source, engine=engine)
    for name in FRAMES:
        own, other = here.frame(name), there.frame(name)
        columns = [c for c in own if c not in ("seconds", "score")]
        pd.testing.assert_frame_equal(own[columns], other[columns])
        if "score" in own:
            np.testing.assert_allclose(own["score"], other["score"], atol=1e-6)
    for stage in ("dataset", "chunks", "index", "run"):
        assert here.key(stage) == there.key(stage)
    assert set(engine.mapped) == {"_Chunking", "_Embedding", "ExactShard", "_Scores"}
    assert min(engine.mapped.values()) > 1
    assert here.tools.counted == there.tools.counted
