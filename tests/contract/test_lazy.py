"""Packages import what is asked of them, and no more."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

LAZY = (
    "answering", "answering.judges", "compare", "datasets", "estimate", "measures",
    "retrieval.chunkers", "retrieval.embedders", "retrieval.retrievers", "store", "track",
)  # fmt: skip


@pytest.mark.parametrize("name", LAZY)
def test_every_name_of_a_package_is_had_and_no_other(name: str) -> None:
    package = import_module(f"ragauge.{name}")
    for public in package.__all__:
        assert getattr(package, public) is getattr(package, public)
    with pytest.raises(AttributeError, match=f"module 'ragauge.{name}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_what_is_not_asked_for_is_not_imported() -> None:
    code = (
        "import sys\nfrom ragauge.datasets import JsonlDataset\nfrom ragauge.retrieval.retrievers import Sim\n"
        "print(JsonlDataset.__name__, *sorted(m for m in sys.modules if m.startswith('ragauge.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name, *modules = done.stdout.split()
    assert name == "JsonlDataset"
    assert {"ragauge.datasets.jsonl", "ragauge.retrieval.retrievers.dense"} <= set(modules)
    assert not {"ragauge.datasets._csv", "ragauge.retrieval.retrievers.bm25", "ragauge.llms.chat"} & set(modules)
