"""Chunks, vectors, pair scores and IR scores by Ray, a node killed in the middle; JSON of what came out.

Run in a namespace of its own: python killed_nodes.py <empty folder>. The head lends no core, three nodes one
each, of which two work.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ray.cluster_utils import Cluster

from marked_parts import MarkedChunker, MarkedEmbedder
from ragauge.contract.component import Tools
from ragauge.contract.engine import Engine, LocalEngine
from ragauge.measures import Substring
from ragauge.measures.scores import part_scores
from ragauge.plugins.ray.engine import RayEngine
from ragauge.plugins.reranking.cross_encoder import CrossEncoderReranker
from ragauge.retrieval.chunkers import chunked
from ragauge.retrieval.embedders import CachedEmbedder, SentenceTransformerEmbedder
from ragauge.retrieval.retrievers import Sim
from ragauge.store import Store
from ragauge.texts.tokenizers import WordTokenizer
from tiny_cross_encoder import write_cross_encoder
from tiny_encoder import write_encoder

N_DOCS, BLOCK = 240, 8
WORDS = ["river", "stone", "tower", "bridge", "hill", "snow", "sea", "boat", "train", "pear", "graz", "linz"]


def documents() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(0, 40))) + f" number {i}." for i in range(N_DOCS)]
    frame = {"docno": [f"d{i}" for i in range(N_DOCS)], "title": [""] * N_DOCS, "text": texts}
    return pd.DataFrame(frame, dtype="str")


@contextmanager
def one_killed(cluster: Cluster, marks: Path, told: dict[str, Any], name: str) -> Iterator[None]:
    """Kills a node once it and another have worked, while they go on."""
    marks.mkdir()

    def kill() -> None:
        deadline = time.monotonic() + 300
        while len(set(nodes(marks))) < 2:
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
        first = nodes(marks)[0]
        victim = next(node for node in cluster.list_all_nodes() if node.node_id == first)
        cluster.remove_node(victim, allow_graceful=False)
        told[name] = {"before": len(nodes(marks))}

    watcher = threading.Thread(target=kill)
    watcher.start()
    yield
    watcher.join()
    by = Counter(nodes(marks))
    told[name] |= {"blocks": sum(by.values()), "nodes": len(by)}


def nodes(marks: Path) -> list[str]:
    return [file.name.split("-")[1] for file in marks.iterdir()]


def small_cluster(nodes_beside_the_head: int) -> Cluster:
    """A head that lends no core, and nodes that lend one each."""
    memory = {"object_store_memory": 100 << 20}
    head = {"num_cpus": 0, "include_dashboard": False, **memory}
    cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
    for _ in range(nodes_beside_the_head):
        patiently(lambda: cluster.add_node(num_cpus=1, **memory))
    return cluster


def patiently(start: Callable[[], Any], tries: int = 5) -> Any:
    """Ray gives a node thirty seconds to come up, which a busy machine exceeds."""
    for _ in range(tries - 1):
        with suppress(Exception):
            return start()
    return start()


def tools(folder: Path, embedder: Any, engine: Engine) -> Tools:
    store = Store(folder)
    return Tools(store, CachedEmbedder(embedder, folder, engine), WordTokenizer(), engine=engine)


def same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    try:
        pd.testing.assert_frame_equal(one, other)
    except AssertionError as error:
        print(error, file=sys.stderr)
        return False
    return True


def main(folder: Path) -> None:
    model = SentenceTransformerEmbedder(str(write_encoder(folder / "encoder")), backend="torch")
    cross = str(write_cross_encoder(folder / "cross"))
    docs = documents()
    cluster = small_cluster(nodes_beside_the_head=3)
    engine = RayEngine(address=cluster.address, workers=2, block_rows=BLOCK, shards=3)
    here, there = (tools(folder / name, model, one) for name, one in (("local", LocalEngine()), ("ray", engine)))
    told: dict[str, Any] = {}

    marks = folder / "chunks"
    with one_killed(cluster, marks, told, "chunks"):
        chunks = chunked(MarkedChunker(marks=marks, seconds=0.1), docs, there)
    told["chunks"]["equal"] = same(chunks, chunked(MarkedChunker(), docs, here))
    told["chunks"]["counted"] = there.counted["documents_seen"]

    marks, texts = folder / "vectors", chunks["text"].tolist()
    marked = MarkedEmbedder(model, marks, 0.1)
    with one_killed(cluster, marks, told, "vectors"):
        vectors = CachedEmbedder(marked, folder / "ray", engine).embed(texts)
    expected = CachedEmbedder(MarkedEmbedder(model), folder / "local").embed(texts)
    told["vectors"] |= {"rows": len(vectors), "of": len(texts), "distinct": len(set(texts))}
    told["vectors"]["off"] = float(np.abs(vectors - expected).max())

    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(40)], "query": texts[:40]}, dtype="str")
    runs = []
    for one in (here, there):
        index = folder / f"index-{len(runs)}"
        index.mkdir()
        np.save(index / "vectors.npy", expected)  # of both, so that float noise is no part of it
        shared = Tools(one.store, here.embedder, one.tokenizer, engine=one.engine)
        runs.append(Sim().transformer(chunks, index, shared)(topics))
    told["run"] = same(*runs)

    reranker = CrossEncoderReranker(cross, depth=5, backend="torch")
    scored = [reranker.rerank(runs[0], topics, chunks, one) for one in (here, there)]
    keys = [frame.set_index(["qid", "docno"])["score"].sort_index() for frame in scored]
    told["reranked"] = {
        "pairs": there.counted["reranker_pairs"],
        "off": float((keys[0] - keys[1]).abs().max()),
    }

    layouts = pd.DataFrame({"qid": topics["qid"], "layout": 0, "text": texts[40:80]})
    prefixes = layouts.assign(n_tokens=9, end=layouts["text"].str.len())[["qid", "n_tokens", "layout", "end"]]
    evidence = pd.DataFrame({"qid": topics["qid"], "part": 0, "text": texts[80:120]})
    values = [part_scores(Substring(), evidence, layouts, prefixes, one) for one in (here, there)]
    told["scores"] = same(*values)
    print(json.dumps(told), flush=True)
    os._exit(0)  # what the cluster leaves behind ends with the namespace


if __name__ == "__main__":
    main(Path(sys.argv[1]))
