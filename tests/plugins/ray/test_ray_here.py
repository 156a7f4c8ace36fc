"""`engine=ray` on this machine alone: order, errors, lost workers, where it listens."""

from __future__ import annotations

from typing import Any

import pytest

from namespaces import told_by

pytestmark = pytest.mark.slow
pytest.importorskip("ray")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found, stderr = told_by("plugins/ray/ray_here.py", tmp_path_factory.mktemp("here"))
    return {**found, "stderr": stderr}


def test_results_come_in_order_and_few_blocks_are_read_ahead(told: dict[str, Any]) -> None:
    assert told["in_order"]
    assert 3 <= told["read_ahead"] <= 3 + 2 * 4 + 1  # two workers, four blocks each
    assert told["rows_at_once"] == 2 * 4 * 3
    assert told["writeable"]  # no view of memory that Ray shares
    assert told["held"] == [[8], [8]]


def test_ray_listens_on_loopback_alone(told: dict[str, Any]) -> None:
    assert set(told["listening"]) <= {"127.0.0.1", "[::ffff:127.0.0.1]", "[::1]"}


def test_an_error_of_the_work_is_raised_as_it_is_and_the_next_work_goes_on(told: dict[str, Any]) -> None:
    assert told["bad_row"] == "DataError: row 13: unlucky"
    assert told["after_it"] == [[2], [4]]


def test_a_lost_worker_costs_no_block_and_one_that_is_always_lost_is_told(told: dict[str, Any]) -> None:
    assert told["one_lost"] == [[2], [1998], [4]]
    assert told["all_lost"].startswith("EngineError: engine: the worker of one block of rows was lost 2 times")
    assert "done again" in told["stderr"]


def test_what_cannot_be_sent_and_what_finds_no_room_are_told_in_one_line(told: dict[str, Any]) -> None:
    assert told["unpicklable"].startswith("ConfigError: engine=ray: Locked cannot be sent to workers")
    assert told["no_room"].startswith("EngineError: engine: no worker could be had within engine.patience=1")
    assert "each wants 1 CPU and 1 GPU, and the nodes have 2 CPU and 0 GPU" in told["no_room"]
    assert "\n" not in told["unpicklable"] + told["no_room"]
