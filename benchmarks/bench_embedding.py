"""Backends and batch sizes of the embedding model: texts per second, and what becomes of the rankings.

1,300 sentences of HotpotQA with its 100 questions and 500 passages with 100 questions of RAG Mini BioASQ,
each text once. Deviation: the largest difference of a question's cosine with a text from that of torch fp32.
Overlap: the share of torch fp32's ten most similar texts of a question that is among the ten. Vectors are
cold, models are loaded; medians of 3 interleaved runs. What is not an option of `embedder` (bf16, int8,
OpenVINO) is there to be compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from timing import against, interleaved, print_header, print_row

from ragauge.retrieval import onnx as onnx_backend
from ragauge.retrieval.embedders.sentence_transformers import BATCH_SIZES, SentenceTransformerEmbedder
from ragauge.texts.model_files import model_path

DATA = Path(__file__).resolve().parents[1] / "../shared/data"
RUNS = 3
TOP = 10
ONNX, GOAL = "ONNX fp32 (`backend=onnx`)", 1.7  # times torch
SIZES, SOME = (4, 8, 16, 32, 64), 320


def collections() -> list[tuple[list[str], list[str]]]:
    """Questions and the texts they are asked of, for both sources; no text twice."""
    hotpot = json.loads((DATA / "hotpot_train_100.json").read_text(encoding="utf-8"))
    sentences = (s.strip() for question in hotpot for _, lines in question["context"] for s in lines)
    passages = pd.read_csv(DATA / "rag_mini_texts.csv")["text"].drop_duplicates()
    questions = pd.read_csv(DATA / "rag_mini_questions_val.csv")["question"].drop_duplicates()
    return [
        ([question["question"] for question in hotpot], list(dict.fromkeys(filter(None, sentences)))[:1300]),
        (questions[:100].tolist(), passages[:500].tolist()),
    ]


def encoder(model: Any, batch_size: int = BATCH_SIZES["torch"]) -> Callable[..., np.ndarray]:
    """Texts to vectors by a model as sentence-transformers has it."""
    return lambda texts: model.encode(texts, batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False)


def variants(scratch: Path) -> dict[str, Callable[[list[str]], np.ndarray] | str]:
    """What is compared, by name; a reason where it cannot be run here. The first is the measure of all."""
    import torch
    from sentence_transformers import SentenceTransformer

    def load(**kwargs: Any) -> Any:
        return SentenceTransformer(
            str(model_path("all-MiniLM-L6-v2")), device="cpu", local_files_only=True, model_kwargs=kwargs
        )

    found: dict[str, Any] = {
        "torch fp32 (`backend=torch`)": SentenceTransformerEmbedder(backend="torch", device="cpu").embed,
        "torch fp32, sentence-transformers' default batches of 32": encoder(load(), 32),
        "torch bf16": encoder(load(dtype=torch.bfloat16)),
    }
    if not onnx_backend.installed():
        names = (ONNX, "ONNX int8 (dynamic)", "OpenVINO f32")
        return found | dict.fromkeys(names, "not installed")
    import onnxruntime.quantization

    model, threads = load(), torch.get_num_threads()
    at_once = 16 * BATCH_SIZES["onnx"]
    file, small = scratch / "model.onnx", scratch / "int8.onnx"
    onnx_backend.export_transformer(model[0], file)
    onnxruntime.quantization.quantize_dynamic(file, small, weight_type=onnxruntime.quantization.QuantType.QInt8)
    onnx_backend.exchange_transformer(model, small)
    model[0].model.threads = threads
    found[ONNX] = SentenceTransformerEmbedder(backend="onnx").embed
    found["ONNX int8 (dynamic)"] = encoder(model, at_once)
    found["OpenVINO f32"] = "not installed"
    if find_spec("openvino") is not None:
        other = load()
        onnx_backend.exchange_transformer(other, file)
        other[0].model.session = OpenVino(file, threads, other[0].model.session.get_inputs())
        found["OpenVINO f32"] = encoder(other, at_once)
    return found


class OpenVino:
    """An exported model run by OpenVINO, with the two methods of ONNX Runtime's session that are used."""

    def __init__(self, file: Path, threads: int, inputs: list[Any]) -> None:
        import openvino

        core = openvino.Core()
        exact = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
        self.request = core.compile_model(core.read_model(file), "CPU", exact).create_infer_request()
        self.inputs = inputs

    def get_inputs(self) -> list[Any]:
        return self.inputs

    def run(self, outputs: list[str], feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        return [np.array(self.request.infer(feed)[name]) for name in outputs]


def closeness(vectors: np.ndarray, exact: np.ndarray, parts: list[tuple[int, int]]) -> tuple[float, float, float]:
    """Largest deviation of a cosine, mean overlap of the top texts, share of questions with equal order."""
    deviation, overlaps, same = 0.0, [], []
    begin = 0
    for n_questions, n_texts in parts:
        at, end = begin + n_questions, begin + n_questions + n_texts
        ours, theirs = (v[begin:at] @ v[at:end].T for v in (vectors, exact))
        deviation = max(deviation, float(np.abs(ours - theirs).max()))
        for a, b in zip(np.argsort(-ours)[:, :TOP], np.argsort(-theirs)[:, :TOP], strict=True):
            overlaps.append(len(set(a) & set(b)) / TOP)
            same.append(float((a == b).all()))
        begin = end
    return deviation, float(np.mean(overlaps)), float(np.mean(same))


def main() -> None:
    """Prints the two tables."""
    if not (DATA / "hotpot_train_100.json").exists():
        print(f"skipped: {DATA / 'hotpot_train_100.json'} is not there")
        return
    found = collections()
    parts = [(len(questions), len(texts)) for questions, texts in found]
    texts = [text for pair in found for side in pair for text in side]
    with tempfile.TemporaryDirectory() as scratch:
        named = variants(Path(scratch))
    works = {name: work for name, work in named.items() if callable(work)}
    for work in works.values():
        work(texts[:64])
    seconds, vectors = interleaved({name: (lambda work=work: work(texts)) for name, work in works.items()}, RUNS)
    first = next(iter(works))
    print_header("backend", "texts/s", "ratio", "largest deviation of a cosine", f"top-{TOP} overlap", "same order")
    for name in named:
        if name not in works:
            print_row(name, "not installed", "", "", "", "")
            continue
        deviation, overlap, same = closeness(vectors[name], vectors[first], parts)
        ratio = seconds[first] / seconds[name]
        aimed = against(GOAL, ratio) if name == ONNX else ""
        print_row(
            name, f"{len(texts) / seconds[name]:.0f}", f"{ratio:.2f}x{aimed}",
            f"{deviation:.1e}", f"{overlap:.3f}", f"{same:.1%}",
        )  # fmt: skip
    print()
    batches(found[0][1][:SOME])
    print()
    starts()


def batches(texts: list[str]) -> None:
    """Prints texts per second of each backend for each batch size."""
    backends = ["torch", *(["onnx"] if onnx_backend.installed() else [])]
    works = {
        f"{backend} {size}": SentenceTransformerEmbedder(backend=backend, device="cpu", batch_size=size)
        for backend in backends
        for size in SIZES
    }
    embedders = {name: (lambda part=part: part.embed(texts)) for name, part in works.items()}
    for part in works.values():
        part.embed(texts[:16])
    seconds, _ = interleaved(embedders, RUNS)
    print_header(f"batch size, {len(texts)} sentences, texts/s", *(str(size) for size in SIZES))
    for backend in backends:
        print_row(backend, *(f"{len(texts) / seconds[f'{backend} {size}']:.0f}" for size in SIZES))


FIRST = """
import sys, time
from pathlib import Path
from ragauge.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder
SentenceTransformerEmbedder(backend=sys.argv[1], device="cpu").embed(["A river."], scratch=Path(sys.argv[2]))
print(time.process_time())
"""


def starts() -> None:
    """Prints what the first vector of a process takes, once the store holds the exported network."""
    print_header("first vector of a process", "processor seconds", "ratio")
    seconds: dict[str, list[float]] = {"torch": [], "onnx": []}
    with tempfile.TemporaryDirectory() as store:
        for number in range(1 + RUNS):
            for backend, of in seconds.items():
                command = [sys.executable, "-c", FIRST, backend, store]
                took = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                of += [took] if number else []  # the first one exports
    median = {backend: float(np.median(of)) for backend, of in seconds.items()}
    for backend, value in median.items():
        print_row(backend, f"{value:.1f}", f"{median['torch'] / value:.1f}x")


if __name__ == "__main__":
    main()
