"""A GGUF file as an embedder, before any server starts: its identity, and what is refused."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

import tiny_gguf
from ragauge.contract import extras
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.plugins.llama_cpp.embedder import FileEmbedder
from tiny_gguf import write_gguf


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of the extra count as installed."""
    monkeypatch.setattr(extras, "find_spec", lambda name: ModuleSpec(name, None))


def test_weights_and_pooling_are_the_identity_and_the_place_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known(file: Path, **settings: Any) -> dict[str, Any]:
        return identity(FileEmbedder(path=str(file), **settings))

    file = write_gguf(tmp_path / "a.gguf")
    first = known(file)
    assert first["pooling"] == "mean"
    moved = file.rename(tmp_path / "b.gguf")
    assert known(moved, threads=2, batch_size=4, context=100) == first
    for other in ({"pooling": "last"}, {"query_prefix": "query: "}):
        assert known(moved, **other) != first
    assert known(write_gguf(moved, tail=b"other weights")) != first
    monkeypatch.setattr(tiny_gguf, "HEADER", {"tiny.pooling_type": 2, **tiny_gguf.HEADER})
    assert known(write_gguf(tmp_path / "c.gguf"))["pooling"] == "file"


def test_settings_out_of_range_are_named(tmp_path: Path) -> None:
    file = str(write_gguf(tmp_path / "a.gguf"))
    for settings, said in (
        ({}, r"embedder\.path"), ({"path": file, "pooling": "max"}, r"embedder\.pooling='max'.*mean, cls, last"),
        ({"path": file, "slots": 0}, r"embedder\.slots=0"), ({"path": file, "context": "long"}, r"embedder\.context="),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            FileEmbedder(**settings)
