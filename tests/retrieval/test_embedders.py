from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.retrieval import onnx as onnx_backend
from ragauge.retrieval.embedders import CachedEmbedder, SentenceTransformerEmbedder
from ragauge.store import Store
from ragauge.store import vectors as vectors_on_disk
from ragauge.texts.model_files import model_path

CARRIED = model_path("all-MiniLM-L6-v2")
needs_model = pytest.mark.skipif(CARRIED is None, reason="the package that carries the model is not installed")


needs_onnx = pytest.mark.skipif(not onnx_backend.installed(), reason="the extra onnx is not installed")


class Encoder:
    """Stands where the model does: unit vectors that follow from the text, and a list of what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        self.asked.extend(texts)
        rows = [
            np.random.default_rng(list(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())).normal(size=8)
            for text in texts
        ]
        vectors = np.array(rows, dtype=np.float32).reshape(-1, 8)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder that has the files of a model, as far as its digest goes."""
    folder = tmp_path / "models" / "tiny"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "modules.json").write_text('[{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Normalize"}]')
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "1_Pooling" / "config.json").write_text('{"mean": true}')
    return folder


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Encoder:
    encoder = Encoder()
    monkeypatch.setattr(SentenceTransformerEmbedder, "_encode", lambda self, texts, store: encoder(texts))
    return encoder


@pytest.fixture
def embed(model: Path, encoder: Encoder, store: Store) -> Callable[[Sequence[str]], np.ndarray]:
    def embed(texts: Sequence[str]) -> np.ndarray:
        vectors = CachedEmbedder(SentenceTransformerEmbedder(str(model)), store.root).embed(texts)
        before = len(encoder.asked)
        expected = encoder(texts)
        del encoder.asked[before:]
        np.testing.assert_array_equal(vectors, expected)
        assert vectors.dtype == np.float32
        return vectors

    return embed


def segments(store: Store) -> list[Path]:
    return sorted((store.root / "vectors").glob("*/segment-*"))


def test_each_distinct_text_is_embedded_once(embed: Any, encoder: Encoder, store: Store) -> None:
    embed(["b", "a", "", "b", "\ud800"])
    assert sorted(encoder.asked) == ["", "a", "b", "\ud800"]
    embed(["a", "ccc", "\ud800", "dd"])
    assert encoder.asked[4:] == ["ccc", "dd"]  # the longest first
    embed(["dd", "b", "dd", "", "ccc"])
    assert len(encoder.asked) == 6
    assert len(segments(store)) == 2


def test_a_text_is_embedded_and_kept_by_its_role(model: Path, encoder: Encoder, store: Store) -> None:
    own = SentenceTransformerEmbedder(str(model), query_prefix="q: ", passage_prefix="p: ")
    cached = CachedEmbedder(own, store.root)
    for _ in range(2):
        for embedder in (own, cached):
            for role in ("query", "passage"):
                np.testing.assert_array_equal(embedder.embed(["a"], role), encoder([f"{role[0]}: a"]))
    before = len(encoder.asked)
    for role in ("query", "passage"):
        cached.embed(["a"], role)
    assert len(encoder.asked) == before


def test_without_a_store_nothing_is_kept(model: Path, encoder: Encoder, store: Store) -> None:
    vectors = SentenceTransformerEmbedder(str(model)).embed(["a", "b", "a"])
    assert vectors.shape == (3, 8)
    assert encoder.asked == ["a", "b"]
    assert not store.root.exists()


def test_no_texts(model: Path, encoder: Encoder, store: Store) -> None:
    embedder = SentenceTransformerEmbedder(str(model))
    assert CachedEmbedder(embedder, store.root).embed([]).shape == embedder.embed([]).shape == (0, 8)


def test_vectors_of_another_model_are_not_read(embed: Any, encoder: Encoder, model: Path, store: Store) -> None:
    embed(["a"])
    other = model.with_name("other")
    shutil.copytree(model, other)
    (other / "model.safetensors").write_bytes(b"other weights")
    CachedEmbedder(SentenceTransformerEmbedder(str(other)), store.root).embed(["a"])
    assert encoder.asked == ["a", "a"]


def test_kill_loses_the_slice_at_hand_only(
    embed: Any, encoder: Encoder, model: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_on_disk, "_SLICE", 10)
    monkeypatch.setattr(vectors_on_disk, "_SLICE_SECONDS", 0.0)
    texts = [f"text {i:02}" for i in range(35)]
    with monkeypatch.context() as patch:

        def killed_at_the_third(self: Any, batch: Sequence[str], store: Store) -> np.ndarray:
            if len(encoder.asked) == 20:
                raise KeyboardInterrupt
            return encoder(batch)

        patch.setattr(SentenceTransformerEmbedder, "_encode", killed_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            CachedEmbedder(SentenceTransformerEmbedder(str(model)), store.root).embed(texts)
    assert len(segments(store)) == 2
    embed(texts)
    assert sorted(encoder.asked) == texts


@pytest.mark.parametrize("file", ["keys.npy", "vectors.npy", "checksums.json"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing"])
def test_damaged_segment_is_dropped_and_its_texts_embedded_again(
    embed: Any, encoder: Encoder, store: Store, caplog: pytest.LogCaptureFixture, file: str, damage: str
) -> None:
    embed(["a", "b"])
    embed(["c"])
    path = next(path for path in segments(store) if len(np.load(path / "keys.npy")) == 2) / file
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-5] if damage == "truncated" else content[:-5] + b"#" + content[-4:])
    with caplog.at_level(logging.WARNING):
        embed(["c", "a", "b"])
    assert "computed again" in caplog.text
    assert sorted(encoder.asked) == ["a", "a", "b", "b", "c"]
    caplog.clear()
    embed(["a", "b", "c"])
    assert not caplog.records
    assert len(encoder.asked) == 5
    assert len(segments(store)) == 2


def test_kill_between_merge_and_tidying_does_no_harm(embed: Any, encoder: Encoder, store: Store) -> None:
    embed(["a", "b"])
    (first,) = segments(store)
    shutil.copytree(first, first.with_name("segment-twice"))
    abandoned = first.with_name("draft-abandoned")
    abandoned.mkdir()
    (abandoned / "keys.npy").write_bytes(b"half")
    embed(["b", "a", "c"])
    assert encoder.asked == ["a", "b", "c"]


def test_two_at_once_embed_each_text_once(model: Path, encoder: Encoder, store: Store) -> None:
    texts = [f"text {i}" for i in range(50)]
    with ThreadPoolExecutor(4) as pool:
        results = list(
            pool.map(
                lambda _: CachedEmbedder(SentenceTransformerEmbedder(str(model)), store.root).embed(texts),
                range(4),
            )
        )
    assert sorted(encoder.asked) == sorted(texts)
    assert all((result == results[0]).all() for result in results)


def test_identity_follows_name_and_content_not_the_path(model: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "tiny"
    shutil.copytree(model, elsewhere)
    (elsewhere / "README.md").write_text("no part of the model")
    (elsewhere / "onnx").mkdir()
    (elsewhere / "onnx" / "model.onnx").write_bytes(b"another format")
    here = identity(SentenceTransformerEmbedder(str(model)))
    assert here == identity(SentenceTransformerEmbedder(str(elsewhere), batch_size=1, device="cpu", threads=1))
    assert str(tmp_path) not in str(here)
    assert identity(SentenceTransformerEmbedder(str(model), device="cuda:1")) == {
        **here,
        "device": "cuda",
        "backend": "torch",
    }
    changed = tmp_path / "changed" / "tiny"
    shutil.copytree(model, changed)
    (changed / "1_Pooling" / "config.json").write_text('{"mean": false}')
    assert identity(SentenceTransformerEmbedder(str(changed))) != here


def test_model_that_cannot_be_had_says_how_to_give_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    for name in ("no-such/model", "no such model", "/no/such/model/folder"):
        with pytest.raises(ConfigError, match=rf"embedder\.model={name}: .*Give the path"):
            SentenceTransformerEmbedder(name).identity()
    with pytest.raises(ConfigError, match=r"the folder holds no model\. Give the path"):
        SentenceTransformerEmbedder(str(tmp_path)).identity()


def test_backend_is_part_of_the_identity_and_of_where_vectors_lie(
    model: Path, encoder: Encoder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_backend, "PACKAGES", ())  # the encoder here stands in for them
    by_torch, by_onnx = (SentenceTransformerEmbedder(str(model), backend=name) for name in ("torch", "onnx"))
    assert identity(by_torch)["backend"] == "torch"
    assert identity(by_onnx) == {**identity(by_torch), "backend": "onnx"}
    CachedEmbedder(by_torch, store.root).embed(["a"])
    CachedEmbedder(by_onnx, store.root).embed(["a"])
    assert encoder.asked == ["a", "a"]
    assert len({path.parent.name for path in segments(store)}) == 2


@pytest.mark.parametrize(
    ("installed", "device", "settled"),
    [(True, "cpu", "onnx"), (True, "cuda:1", "torch"), (False, "cpu", "torch")],
)
def test_auto_is_onnx_where_it_can_be(
    monkeypatch: pytest.MonkeyPatch, installed: bool, device: str, settled: str
) -> None:
    monkeypatch.setattr(onnx_backend, "installed", lambda: installed)
    assert SentenceTransformerEmbedder(device=device).backend == settled


def test_backend_that_cannot_be_had_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"^embedder\.backend='tf': allowed are auto, torch, onnx$"):
        SentenceTransformerEmbedder(backend="tf")
    with pytest.raises(ConfigError, match=r"^embedder\.device=cuda: .* onnx runs on the CPU"):
        SentenceTransformerEmbedder(backend="onnx", device="cuda")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as if it were not installed
    with pytest.raises(ConfigError, match=r"^embedder\.backend=onnx .*pip install 'ragauge\[onnx\]'"):
        SentenceTransformerEmbedder(backend="onnx")


@pytest.mark.parametrize("fields", [{"model": ""}, {"batch_size": 0}, {"threads": 0}, {"threads": "2"}])
def test_values_out_of_range_name_the_key(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"embedder.{next(iter(fields))}="):
        SentenceTransformerEmbedder(**fields)


@needs_model
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", pytest.param("onnx", marks=needs_onnx)])
def test_carried_model_embeds_and_batches_do_not_matter(store: Store, backend: str) -> None:
    other = Store(store.root.with_name("other"))
    texts = ["The Rhine rises in Switzerland.", "A river of the Alps.", "", "word " * 400, "日本", "\ud800"]
    texts += [f"Sentence number {i} " + "and more " * i for i in range(40)]
    vectors = CachedEmbedder(SentenceTransformerEmbedder(backend=backend), store.root).embed(texts)
    assert vectors.shape == (len(texts), 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[10]
    alone = CachedEmbedder(SentenceTransformerEmbedder(backend=backend, batch_size=1), other.root).embed(texts[::-1])[
        ::-1
    ]
    np.testing.assert_allclose(alone, vectors, atol=2e-6)
    assert CachedEmbedder(SentenceTransformerEmbedder(backend=backend), store.root).embed([]).shape == (
        0,
        384,
    )


@needs_model
@pytest.mark.slow
def test_folder_that_is_no_sentence_transformers_model(model: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be loaded by sentence-transformers"):
        SentenceTransformerEmbedder(str(model)).embed(["a"])


@needs_model
def test_torch_is_not_imported_where_all_vectors_are_there(store: Store, encoder: Encoder) -> None:
    CachedEmbedder(SentenceTransformerEmbedder(), store.root).embed(["a", "b"])
    code = (
        "import sys; from pathlib import Path;"
        "from ragauge.retrieval.embedders import CachedEmbedder, SentenceTransformerEmbedder as E;"
        f"CachedEmbedder(E(), Path({str(store.root)!r})).embed(['b', 'a']);"
        "bad = {'torch', 'transformers', 'sentence_transformers', 'onnxruntime', 'onnx'} & set(sys.modules);"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
