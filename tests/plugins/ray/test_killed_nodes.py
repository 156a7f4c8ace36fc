"""`engine=ray` on a small cluster whose nodes are killed while they work: the results of `engine=local`."""

from __future__ import annotations

from typing import Any

import pytest

from namespaces import told_by

pytestmark = pytest.mark.slow
pytest.importorskip("ray")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return told_by("plugins/ray/killed_nodes.py", tmp_path_factory.mktemp("cluster"))[0]


def test_chunks_are_those_of_one_process_though_a_node_was_killed(told: dict[str, Any]) -> None:
    chunks = told["chunks"]
    assert chunks["equal"]
    assert chunks["counted"] == 240
    assert chunks["before"] < 30 <= chunks["blocks"]  # of eight documents; it was killed in the middle
    assert chunks["nodes"] >= 2


def test_every_text_has_its_vector_though_a_node_was_killed(told: dict[str, Any]) -> None:
    vectors = told["vectors"]
    assert vectors["rows"] == vectors["of"]
    assert vectors["off"] < 1e-6
    assert vectors["before"] < -(-vectors["distinct"] // 8) <= vectors["blocks"]
    assert vectors["nodes"] >= 2


def test_search_over_shards_reranking_and_scores_are_those_of_one_process(told: dict[str, Any]) -> None:
    assert told["run"]
    assert told["scores"]
    assert told["reranked"]["off"] < 1e-6
    assert 0 < told["reranked"]["pairs"] <= 200
