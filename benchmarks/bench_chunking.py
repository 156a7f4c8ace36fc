"""Semantic chunking of 2,000 documents against LlamaIndex's SemanticSplitterNodeParser over torch.

The documents are HotpotQA's 994 paragraphs and the first passages of RAG Mini BioASQ. Both sides get the same
sentences, a window of one sentence on each side and the 80th percentile; LlamaIndex embeds by
sentence-transformers with its default batch of 10. Vectors are cold, models are loaded; medians of 3
interleaved runs. A document agrees where all its chunks are the same.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
from timing import against, interleaved, print_header, print_row

from ragauge.contract.component import Tools
from ragauge.retrieval import onnx as onnx_backend
from ragauge.retrieval.chunkers import SemanticChunker
from ragauge.retrieval.chunkers._semantic import merge_sentences
from ragauge.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder
from ragauge.store import Store
from ragauge.texts.model_files import model_path
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.tokenizers import WordTokenizer

DATA = Path(__file__).resolve().parents[1] / "../shared/data"
DOCUMENTS, RUNS = 2000, 3
GOAL = 1.6  # times LlamaIndex
CHUNKER = SemanticChunker(min_sentence_chars=40, window_each_side=1, breakpoint_percentile=80, max_tokens=None)


def documents() -> list[str]:
    """The texts, each once."""
    questions = json.loads((DATA / "hotpot_train_100.json").read_text(encoding="utf-8"))
    paragraphs = ["".join(lines) for question in questions for _, lines in question["context"]]
    passages = pd.read_csv(DATA / "rag_mini_texts.csv")["text"].tolist()
    return [text for text in dict.fromkeys(paragraphs + passages) if text.strip()][:DOCUMENTS]


def llama_index(texts: list[str]) -> Callable[[], list[list[str]]]:
    """A call that splits the texts by LlamaIndex and returns the chunks of each."""
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import SemanticSplitterNodeParser
    from llama_index.core.schema import Document
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(model_path("all-MiniLM-L6-v2")), device="cpu", local_files_only=True)

    class Torch(BaseEmbedding):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            # It joins sentences with nothing between them, so they carry the white space behind them.
            stripped = [text.strip() for text in texts]
            return model.encode(stripped, batch_size=self.embed_batch_size, show_progress_bar=False).tolist()

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    def split(text: str) -> list[str]:
        starts = [start for start, _ in merge_sentences(sentence_spans(text), CHUNKER.min_sentence_chars)]
        return [text[start:end] for start, end in pairwise([*starts, len(text)])]

    parser = SemanticSplitterNodeParser(
        embed_model=Torch(),
        sentence_splitter=split,
        buffer_size=CHUNKER.window_each_side,
        breakpoint_percentile_threshold=int(CHUNKER.breakpoint_percentile),
    )

    def chunk() -> list[list[str]]:
        nodes = parser.get_nodes_from_documents([Document(text=text, id_=str(i)) for i, text in enumerate(texts)])
        found: list[list[str]] = [[] for _ in texts]
        for node in nodes:
            found[int(node.ref_doc_id)].append(node.get_content().strip())
        return found

    return chunk


def ours(texts: list[str], backend: str, root: Path) -> Callable[[], list[list[str]]]:
    """A call that forgets all vectors, splits by `chunker=semantic` and returns the chunks of each text."""
    embedder: Any = SentenceTransformerEmbedder(backend=backend, device="cpu")
    tools = Tools(Store(root), embedder, WordTokenizer())
    docnos = [str(i) for i in range(len(texts))]
    docs = pd.DataFrame({"docno": docnos, "title": "", "text": texts}).astype("str")
    embedder.embed(texts[:8], tools.store)

    def chunk() -> list[list[str]]:
        shutil.rmtree(root / "vectors", ignore_errors=True)
        chunks = CHUNKER.chunk(docs, tools).groupby("parent")["text"].agg(list)
        return chunks.loc[docnos].tolist()

    return chunk


def main() -> None:
    """Prints the table."""
    if not (DATA / "hotpot_train_100.json").exists():
        print(f"skipped: {DATA / 'hotpot_train_100.json'} is not there")
        return
    texts = documents()
    works = {"LlamaIndex": llama_index(texts)}
    backends = ["torch", *(["onnx"] if onnx_backend.installed() else [])]
    with tempfile.TemporaryDirectory() as scratch:
        works |= {backend: ours(texts, backend, Path(scratch) / backend) for backend in backends}
        seconds, chunks = interleaved(works, RUNS)
    theirs = seconds["LlamaIndex"]
    print_header("what", "ours", "theirs", "ratio", "agreement")
    for backend in backends:
        same = sum(a == b for a, b in zip(chunks[backend], chunks["LlamaIndex"], strict=True))
        what, mine = f"{len(texts):,} documents, `embedder.backend={backend}`", seconds[backend]
        ratio = f"{theirs / mine:.2f}x{against(GOAL, theirs / mine)}"
        agreement = f"same chunks of {same:,} of {len(texts):,} documents"
        print_row(what, f"{mine:.1f} s", f"{theirs:.1f} s", ratio, agreement)
    if "onnx" not in backends:
        print_row("`embedder.backend=onnx`", "not installed", "", "", "")


if __name__ == "__main__":
    main()
