"""How a scripted Ray is started or reached, what its nodes have room for, and what RayEngine asks of it."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

import pytest

from plugins.ray.scripted_ray import ScriptedRay, node, stand_in
from ragauge.contract.errors import EngineError
from ragauge.plugins.ray import _cluster, _pool
from ragauge.plugins.ray._cluster import connect, nodes, room
from ragauge.plugins.ray.engine import RayEngine


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> ScriptedRay:
    return stand_in(monkeypatch)


def test_ray_is_started_here_once_with_its_cores_and_memory(ray: ScriptedRay) -> None:
    assert connect(None, 3, 80 << 20)
    assert not connect(None, 3, 80 << 20)
    ((address, given),) = ray.started
    assert address == "local"
    assert given == {
        "num_cpus": 3,
        "object_store_memory": 80 << 20,
        "include_dashboard": False,
        "log_to_driver": False,
        "logging_level": 40,
    }
    assert not ray._private.worker._worker_logs_enabled
    assert os.environ[_cluster._NO_REPORTS] == "0"


def test_a_cluster_is_reached_as_it_is(ray: ScriptedRay) -> None:
    assert connect("head:6379", 3, 80 << 20)
    assert ray.started == [("head:6379", {"log_to_driver": False, "logging_level": 40})]
    assert _cluster._ALONE not in os.environ


@pytest.mark.parametrize(("address", "loaded", "told"), [(None, False, "0"), (None, True, None), ("a:1", False, None)])
def test_ray_is_told_to_keep_to_loopback_before_it_is_loaded(
    ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch, address: str | None, loaded: bool, told: str | None
) -> None:
    if not loaded:  # imported by `connect` itself, from where imports come
        monkeypatch.delitem(sys.modules, "ray")
        monkeypatch.setattr(sys, "meta_path", [_Finder(ray), *sys.meta_path])
    connect(address, None, 80 << 20)
    assert os.environ.get(_cluster._ALONE) == told


class _Finder:
    """Imports the scripted Ray."""

    def __init__(self, ray: ScriptedRay) -> None:
        self.ray = ray

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name == "ray" else None

    def create_module(self, spec: Any) -> Any:
        return self.ray

    def exec_module(self, module: Any) -> None:
        pass


def test_what_users_have_set_stays(ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_cluster._NO_REPORTS, "1")
    connect(None, None, 80 << 20)
    assert os.environ[_cluster._NO_REPORTS] == "1"


def test_a_start_here_is_tried_three_times_and_a_cluster_asked_once(ray: ScriptedRay) -> None:
    ray.failures = [RuntimeError("busy"), RuntimeError("busy")]
    assert connect(None, None, 80 << 20)
    assert (len(ray.started), ray.shutdowns) == (3, 2)
    ray.initialized, ray.started, ray.shutdowns = False, [], 0
    ray.failures = [RuntimeError(f"busy {i}\nand a page of log") for i in range(3)]
    with pytest.raises(EngineError, match=r"^engine\.address=None: Ray cannot be started here: busy 2$"):
        connect(None, None, 80 << 20)
    assert (len(ray.started), ray.shutdowns) == (3, 3)
    ray.failures, ray.started = [ConnectionError()], []
    with pytest.raises(EngineError, match=r"^engine\.address=a:1: no Ray cluster answers: ConnectionError$"):
        connect("a:1", None, 80 << 20)
    assert len(ray.started) == 1


def test_nodes_are_those_that_live_and_lend_cores(ray: ScriptedRay) -> None:
    head, dead = node("head", CPU=0.0), node("dead", alive=False, CPU=8.0)
    one, other = node("one", CPU=2.0), node("other", CPU=0.5)
    ray.node_rows = [head, dead, one, other]
    assert nodes() == [one, other]
    bare = node("bare", GPU=1.0)
    ray.node_rows = [head, dead, bare]
    assert nodes() == [head, bare]


@pytest.mark.parametrize(
    ("rows", "cpus", "gpus", "expected"),
    [
        ([{"CPU": 4.0}], 1, 0, 4),
        ([{"CPU": 3.0}, {"CPU": 3.0}], 2, 0, 2),  # a worker is on one node
        ([{"CPU": 4.0, "GPU": 1.0}, {"CPU": 8.0}], 1, 0.5, 2),
        ([{"CPU": 0.3}], 0.1, 0, 3),  # 0.3 / 0.1 is less than 3
        ([{"CPU": 1.9}], 1, 0, 1),
        ([{"CPU": 1.0}], 2, 0, 1),  # one is waited for
        ([], 1, 0, 1),
    ],
    ids=str,
)
def test_room_is_that_of_every_node_by_itself(
    ray: ScriptedRay, rows: list[dict[str, float]], cpus: float, gpus: float, expected: int
) -> None:
    ray.node_rows = [node(str(i), **has) for i, has in enumerate(rows)]
    assert room(cpus, gpus) == expected


@pytest.mark.parametrize(("workers", "most"), [(None, 5), (3, 3), (9, 5)])
def test_workers_are_as_many_as_there_is_room_for_at_most(ray: ScriptedRay, workers: int | None, most: int) -> None:
    ray.node_rows = [node("one", CPU=2.0), node("other", CPU=3.0)]
    engine = RayEngine(workers=workers, block_rows=7)
    assert engine.rows_at_once == most * 4 * 7
    ray.silent = lambda number: ray.now == 0  # so that all are started before one answers
    assert list(engine.map(_same, range(20))) == list(range(20))
    assert len(ray.actors) == most


def _same(block: int) -> int:
    return block


def test_the_values_of_the_config_reach_ray(ray: ScriptedRay) -> None:
    ray.node_rows = [node("one", CPU=2.0, GPU=2.0)]
    engine = RayEngine(num_cpus=2, object_store_mb=90, worker_cpus=0.5, worker_gpus=0.25, retries=4, patience=7)
    assert engine._limits == _pool.Limits(0.5, 0.25, 4, 7)
    assert engine._most == 4
    assert list(engine.map(_same, [1])) == [1]
    ((_, given),) = ray.started
    assert (given["num_cpus"], given["object_store_memory"]) == (2, 90 * 1024 * 1024)
    assert engine.hold([_same, _same]).ask(3) == [3, 3]
    assert len(ray.started) == 1


def test_held_work_starts_ray_by_itself(ray: ScriptedRay) -> None:
    held = RayEngine().hold([_same])
    assert ray.initialized
    assert held.ask(3) == [3]


def test_workers_of_a_connection_that_is_no_more_are_forgotten(ray: ScriptedRay) -> None:
    assert list(RayEngine().map(_same, [1])) == [1]
    first = _pool._pools[0]
    assert list(RayEngine().map(_same, [1])) == [1]
    assert _pool._pools == [first]
    ray.initialized = False
    assert list(RayEngine().map(_same, [1])) == [1]
    assert _pool._pools != [first]
