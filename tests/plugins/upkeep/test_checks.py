"""What `ragauge store` says of entries and pair scores that a store wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from ragauge.contract.frames import Batches
from ragauge.plugins.reranking.cross_encoder import CrossEncoderReranker
from ragauge.plugins.upkeep import listing, removal
from ragauge.plugins.upkeep.check import damage
from ragauge.plugins.upkeep.listing import list_items
from ragauge.store import Key, Store, file_sha256
from small_pipeline import SmallPipelines
from tiny_cross_encoder import write_cross_encoder

KEY = Key("dataset", 1)


def docs(first: int) -> pd.DataFrame:
    rows = {"docno": [f"d{i}" for i in range(first, first + 3)], "title": "", "text": "ü"}
    return pd.DataFrame(rows).astype("str")


def in_batches(*batches: pd.DataFrame) -> Batches:
    return Batches(lambda: iter(batches))


def test_an_entry_whose_key_kept_a_secret_out_is_whole(tmp_path: Path) -> None:
    key = Key("run", 1, {"retriever": {"api_key": "Planted7Zq0x4Wv9Tk2"}}, {"index": "9f86d081"})
    Store(tmp_path).get(key, lambda folder: (folder / "data").write_text("x"))
    (item,) = list_items(tmp_path)
    assert damage(item) == []


def test_verify_reads_row_groups(tmp_path: Path) -> None:
    entry = Store(tmp_path).get_frames(KEY, lambda: {"docs": in_batches(docs(0), docs(3))})
    (item,) = list_items(tmp_path)
    assert damage(item) == []
    table = pq.read_table(entry.path / "docs.parquet")
    pq.write_table(table.slice(1), entry.path / "docs.parquet", row_group_size=2)
    key = json.loads((entry.path / "key.json").read_text())
    key["files"]["docs.parquet"] = file_sha256(entry.path / "docs.parquet")
    (entry.path / "key.json").write_text(json.dumps(key))
    (item,) = list_items(tmp_path)
    assert damage(item) == ["docs.parquet holds other rows than key.json records"]


def test_scores_of_pairs_are_listed_and_removed_as_one(tmp_path: Path, small: SmallPipelines) -> None:
    tiny = write_cross_encoder(tmp_path / "tiny")
    job = small(reranker=CrossEncoderReranker(str(tiny), backend="torch"))
    job.frame("run")
    root: Path = job.store.root
    (scores,) = (cache for cache in listing.list_caches(root) if cache.name.startswith("pair_scores/"))
    assert removal.remove(root, scores)
    assert not scores.path.exists()
