"""Threads, context and slots that fit the machine."""

from __future__ import annotations

from typing import Any

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.plugins.llama_cpp import fitting
from ragauge.plugins.llama_cpp.gguf import Header

MODEL = Header(trained=32768, cache=1 << 17, size=4 << 30)  # 4 GiB of weights, 1 GiB of cache for 8192 tokens
BESIDE = 400 << 20


def fit(free_gib: float | None, **wish: int) -> tuple[Any, ...]:
    found = fitting.fitted(
        "llm.path", MODEL, {"threads": None, "context": None, "slots": None, **wish},
        None if free_gib is None else int(free_gib * 2**30) + BESIDE, cores=7,
    )  # fmt: skip
    return found.threads, found.context, found.slots


def test_memory_shortens_the_context_before_it_takes_slots() -> None:
    assert fit(None) == fit(8) == (6, 8192, 4)
    assert fit(7.9) == (6, 4096, 4)
    assert fit(5) == (6, 2048, 4)
    assert fit(4.5) == (6, 2048, 2)
    assert fit(4.25) == (6, 2048, 1)


def test_what_is_set_is_kept_or_refused_in_one_line() -> None:
    assert fit(None, threads=2, context=512, slots=9) == (2, 512, 9)
    assert fit(6, slots=1) == (6, 8192, 1)
    with pytest.raises(
        ConfigError,
        match=r"^llm.path: the model needs 6.4 GiB of memory \(4.0 of weights, slots=1, context=16384\), and 5.4 are "
        r"free; take a smaller file or context$",
    ):
        fit(5, context=16384)
    with pytest.raises(ConfigError, match=r"^llm.path: the model needs 4.6 GiB .* slots=1, context=2048"):
        fit(1)


def test_a_container_s_limits_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(fitting, "_CGROUP", tmp_path)
    alone, free = fitting.cores(), fitting.free_memory()
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text(f"{1 << 20}\n")
    (tmp_path / "memory.current").write_text(f"{1 << 19}\n")
    assert fitting.cores() == 1 <= alone
    assert free is None or fitting.free_memory() == 1 << 19
