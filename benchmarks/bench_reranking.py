"""`reranker=cross_encoder` against sentence-transformers' own `CrossEncoder.predict`: pairs per second.

A network of MiniLM's size (its weights, a random head) reads questions of the shipped sample with chunks of
one to eight sentences of its documents, mixed. Both run on all cores, models are loaded; medians of 3
interleaved runs. Deviation: the largest difference of a score from that of `predict`. The last row reranks
what was scored before, from the store alone.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from timing import against, interleaved, print_header, print_row

from ragauge.contract.component import Tools
from ragauge.datasets import SampleDataset
from ragauge.plugins.reranking.cross_encoder import CrossEncoderReranker
from ragauge.plugins.reranking.pair_model import BATCH_TOKENS, load_pair_model, pair_model_folder
from ragauge.retrieval import onnx as onnx_backend
from ragauge.retrieval.ranking import ranked
from ragauge.store import Store
from ragauge.texts.model_files import model_path
from ragauge.texts.sentences import sentence_spans

TOPICS, DEPTH = 16, 20
RUNS = 3
GOAL = 1.5  # times sentence-transformers' pairs per second


def write_model(folder: Path) -> Path:
    """MiniLM's weights with a random head of one score, as a cross-encoder's folder."""
    import torch
    import transformers

    carried = model_path("all-MiniLM-L6-v2")
    assert carried is not None
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    transformers.AutoModelForSequenceClassification.from_pretrained(carried, num_labels=1).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(carried, model_max_length=512).save_pretrained(folder)
    return folder


def candidates() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """A run of TOPICS x DEPTH chunks drawn at random, its topics and its chunks."""
    data = SampleDataset().load()
    rng = np.random.default_rng(0)
    texts = []
    for text in data.docs["text"]:
        spans = list(sentence_spans(text))
        first = 0
        while first < len(spans):
            group = spans[first : first + int(rng.integers(1, 9))]
            texts.append(text[group[0][0] : group[-1][1]])
            first += len(group)
    chunks = pd.DataFrame({"docno": [f"c{i}" for i in range(len(texts))], "text": texts})
    topics = data.topics[["qid", "query"]].head(TOPICS)
    run = pd.concat(
        [
            chunks[["docno"]].sample(DEPTH, random_state=i).assign(qid=qid, score=1.0)
            for i, qid in enumerate(topics["qid"])
        ],
        ignore_index=True,
    )
    return ranked(run), topics, chunks


def main() -> None:
    """Prints the table."""
    from sentence_transformers import CrossEncoder

    logging.getLogger("ragauge").setLevel(logging.ERROR)
    run, topics, chunks = candidates()
    texts, queries = chunks.set_index("docno")["text"], topics.set_index("qid")["query"]
    pairs = list(zip(queries.loc[run["qid"]].tolist(), texts.loc[run["docno"]].tolist(), strict=True))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pair_model_folder(str(write_model(Path(scratch) / "minilm")))
        root = Path(scratch) / "store"
        theirs = CrossEncoder(str(folder), device="cpu")
        lengths = theirs.preprocess([list(pair) for pair in pairs])["attention_mask"].sum(1).numpy()
        backends = [name for name in BATCH_TOKENS if name == "torch" or onnx_backend.installed()]
        works: dict[str, Callable[[], Any]] = {
            "predict": lambda: theirs.predict([list(pair) for pair in pairs], show_progress_bar=False)
        }
        for name in backends:
            model = load_pair_model(folder, name, "cpu", None, root)
            works[name] = lambda model=model: model.scores(pairs)
            model.scores(pairs[:64])
        theirs.predict([list(pair) for pair in pairs[:64]], show_progress_bar=False)
        seconds, scores = interleaved(works, RUNS)

        backend = backends[-1]
        part = CrossEncoderReranker(model=str(folder), backend=backend, depth=DEPTH)
        tools = Tools(Store(root), None, None)  # type: ignore[arg-type]
        part.rerank(run, topics, chunks, tools)
        scored = tools.counted["reranker_pairs"]
        known, _ = interleaved({"known": lambda: part.rerank(run, topics, chunks, tools)}, RUNS)
        again = tools.counted["reranker_pairs"] - scored

    quartiles = ", ".join(f"{q:.0f}" for q in np.percentile(lengths, [5, 50, 95]))
    print(f"{len(pairs)} pairs; 5th, 50th and 95th percentile of their tokens: {quartiles}.\n")
    print_header("what", "pairs/s", "ratio", "largest deviation of a score")
    base = seconds["predict"]
    print_row("CrossEncoder.predict, its batches of 32", f"{len(pairs) / base:.0f}", "1.00x", "")
    for name in backends:
        goal = against(GOAL, base / seconds[name]) if name == backends[-1] else ""
        deviation = float(np.abs(scores[name] - scores["predict"]).max())
        print_row(
            f"`backend={name}`, batches of {BATCH_TOKENS[name]:,} tokens",
            f"{len(pairs) / seconds[name]:.0f}",
            f"{base / seconds[name]:.2f}x{goal}",
            f"{deviation:.1e}",
        )
    what = f"`backend={backend}`, all pairs scored before ({again} scored again)"
    print_row(what, f"{len(pairs) / known['known']:.0f}", f"{base / known['known']:.0f}x", "")


if __name__ == "__main__":
    main()
