"""A model run by ONNX Runtime beside the same model run by torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.datasets import SampleDataset
from ragauge.retrieval import onnx as onnx_backend
from ragauge.retrieval.embedders import CachedEmbedder, SentenceTransformerEmbedder
from ragauge.retrieval.embedders import sentence_transformers as embedders
from ragauge.retrieval.onnx_encoder import OnnxEncoder
from ragauge.store import Store
from ragauge.texts.model_files import model_path

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

CARRIED = model_path("all-MiniLM-L6-v2")
pytestmark = pytest.mark.skipif(CARRIED is None, reason="the package that carries the model is not installed")

TEXTS = ["The Rhine rises in Switzerland.", "", "日本 and Genève", "a", "word " * 300]
TEXTS += [f"Sentence number {i} " + "and more " * (i % 9) for i in range(60)]
WIDTH = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
HEADS = {"num_key_value_heads": 2, "head_dim": 8}  # of the architectures that have them


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The empty place of a test's exported models; as in a new process none is loaded."""
    monkeypatch.setenv("RAGAUGE_CACHE", str(tmp_path / "cache"))
    embedders._load_onnx.cache_clear()
    yield tmp_path / "cache"
    embedders._load_onnx.cache_clear()


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Writes a small model with random weights as sentence-transformers does, and returns its folder."""

    def build(architecture: str = "bert", pooling: str = "mean", dtype: str = "float32") -> str:
        import torch
        import transformers
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Normalize, Pooling, Transformer

        folder = tmp_path_factory.mktemp(architecture)
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(architecture, vocab_size=30522, pad_token_id=0, **WIDTH, **HEADS)
        network = transformers.AutoModel.from_config(config, dtype=getattr(torch, dtype))
        network.save_pretrained(folder / "network")
        transformers.AutoTokenizer.from_pretrained(CARRIED).save_pretrained(folder / "network")
        transformer = Transformer(str(folder / "network"), max_seq_length=128)
        modules = [transformer, Pooling(WIDTH["hidden_size"], pooling_mode=pooling), Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"))
        return str(folder / "model")

    return build


# --- batches ------------------------------------------------------------------------------------------


class Session:
    """Stands where ONNX Runtime's session does: the hidden state of a token is its id, twice."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="input_ids"), SimpleNamespace(name="attention_mask")]

    def run(self, outputs: list[str], feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        assert outputs == ["last_hidden_state"]
        self.shapes.append(feed["input_ids"].shape)
        assert feed["attention_mask"].shape == feed["input_ids"].shape
        return [np.repeat(feed["input_ids"][:, :, None], 2, axis=2).astype(np.float32)]


@pytest.mark.parametrize("threads", [1, 3])
def test_texts_of_one_length_are_computed_together_and_come_back_in_order(threads: int) -> None:
    import torch

    session = Session()
    part = onnx_backend.OnnxTransformer(None, session, batch_size=2, threads=threads)
    ids = torch.tensor([[1, 0, 0, 0], [2, 2, 2, 2], [3, 3, 0, 0], [4, 0, 0, 0], [5, 5, 5, 0]])
    features = {"input_ids": ids, "attention_mask": (ids > 0).long(), "return_dict": True, "unused": ids}
    hidden = part.forward(**features)["last_hidden_state"]
    assert hidden.dtype == torch.float32
    assert hidden.tolist() == [[[i, i] for i in row] for row in ids.tolist()]
    assert sorted(session.shapes) == [(1, 1), (2, 2), (2, 4)]  # 3 with one of length 1, 2 with 5


def test_nothing_is_cut_off_where_the_padding_is_on_the_left() -> None:
    import torch

    session = Session()
    ids = torch.tensor([[0, 0, 1], [0, 2, 2]])
    part = onnx_backend.OnnxTransformer(None, session, batch_size=1)
    hidden = part.forward(input_ids=ids, attention_mask=(ids > 0).long())["last_hidden_state"]
    assert hidden[:, :, 0].tolist() == ids.tolist()
    assert session.shapes == [(1, 3), (1, 3)]


# --- beside torch -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_default_model_gives_torch_s_vectors_and_rankings(store: Store) -> None:
    data = SampleDataset().load()
    docs, queries = data.docs["text"].tolist(), data.topics["query"].tolist()
    by_torch = SentenceTransformerEmbedder(backend="torch", device="cpu").embed(docs + queries)
    by_onnx = CachedEmbedder(SentenceTransformerEmbedder(backend="onnx"), store.root).embed(docs + queries)
    assert np.abs(by_onnx - by_torch).max() < 1e-5
    tops = [
        np.argsort(-(v[len(docs) :] @ v[: len(docs)].T), axis=1, kind="stable")[:, :10] for v in (by_torch, by_onnx)
    ]
    np.testing.assert_array_equal(*tops)


@pytest.mark.parametrize(
    ("architecture", "pooling"),
    [
        ("bert", "cls"),
        ("mpnet", "mean"),
        ("xlm-roberta", "max"),
        ("modernbert", "mean"),
        ("qwen3", "lasttoken"),
    ],
)
def test_other_models_give_torch_s_vectors(
    build: Callable[..., str], store: Store, architecture: str, pooling: str
) -> None:
    model = build(architecture, pooling)
    by_torch = SentenceTransformerEmbedder(model, backend="torch", device="cpu").embed(TEXTS)
    by_onnx = CachedEmbedder(SentenceTransformerEmbedder(model, backend="onnx"), store.root).embed(TEXTS)
    assert np.abs(by_onnx - by_torch).max() < 1e-5
    assert np.abs(by_torch[0] - by_torch[5]).max() > 1e-3
    alone = isinstance(embedders._load_onnx(Path(model).resolve(), store.root.absolute()), OnnxEncoder)
    assert alone == (pooling in ("mean", "cls"))


def test_prompts_are_those_of_the_model(build: Callable[..., str], store: Store) -> None:
    from sentence_transformers import SentenceTransformer

    folder = build()
    model = SentenceTransformer(folder, device="cpu", prompts={"p": "query: "}, default_prompt_name="p")
    model.save(folder)
    prompted = model.encode(TEXTS, normalize_embeddings=True)
    assert np.abs(prompted - model.encode(TEXTS, prompt="", normalize_embeddings=True)).max() > 1e-3
    by_onnx = CachedEmbedder(SentenceTransformerEmbedder(folder, backend="onnx"), store.root).embed(TEXTS)
    assert np.abs(by_onnx - prompted).max() < 1e-5


def test_threads_change_no_bit(build: Callable[..., str]) -> None:
    import torch

    model, threads = build(), torch.get_num_threads()
    try:
        one, three = (
            SentenceTransformerEmbedder(model, backend="onnx", batch_size=2, threads=n).embed(TEXTS) for n in (1, 3)
        )
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(one, three)


# --- the exported file --------------------------------------------------------------------------------


def test_a_model_is_exported_once_for_all_stores(
    build: Callable[..., str], store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = []
    export = onnx_backend.export_transformer
    monkeypatch.setattr(
        onnx_backend,
        "export_transformer",
        lambda part, file, *more: (exported.append(file), export(part, file, *more)),
    )
    embedder = SentenceTransformerEmbedder(build(), backend="onnx")
    first = CachedEmbedder(embedder, store.root).embed(TEXTS)
    embedders._load_onnx.cache_clear()  # another process, which loads no torch
    monkeypatch.setattr(embedders, "read_encoder", None)
    again = CachedEmbedder(embedder, store.root / "another").embed([*TEXTS, "one more"])
    assert len(exported) == 1
    assert len(list((cache / "onnx").glob("*/model.onnx"))) == 1
    assert not (store.root / "onnx").exists()
    np.testing.assert_array_equal(again[:-1], first)


def test_without_a_place_of_the_user_the_store_holds_the_file_and_without_a_store_none_is_left(
    build: Callable[..., str], store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RAGAUGE_CACHE", str(tmp_path / "file" / "ragauge"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    embedder = SentenceTransformerEmbedder(build(), backend="onnx")
    vectors = embedder.embed(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert list(scratch.iterdir()) == []
    np.testing.assert_allclose(CachedEmbedder(embedder, store.root).embed(TEXTS), vectors, atol=1e-5)
    assert len(list((store.root / "onnx").glob("*/model.onnx"))) == 1


def test_an_export_that_gives_other_vectors_is_refused(
    build: Callable[..., str], store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = onnx_backend.export_transformer

    def wrong(transformer: Any, file: Path, *more: Any) -> None:
        import torch

        with torch.no_grad():
            transformer.model.embeddings.word_embeddings.weight.mul_(1.5)
        export(transformer, file, *more)

    monkeypatch.setattr(onnx_backend, "export_transformer", wrong)
    with pytest.raises(ConfigError, match=r"other vectors than torch \(by .*\)\. embedder\.backend=torch"):
        CachedEmbedder(SentenceTransformerEmbedder(build(), backend="onnx"), store.root).embed(TEXTS)
    assert not list((cache / "onnx").glob("*"))


def test_weights_of_half_precision_are_refused(build: Callable[..., str], store: Store) -> None:
    with pytest.raises(ConfigError, match=r"cannot run .*bfloat16, not torch.float32\. embedder\.backend=torch"):
        CachedEmbedder(SentenceTransformerEmbedder(build(dtype="bfloat16"), backend="onnx"), store.root).embed(TEXTS)
