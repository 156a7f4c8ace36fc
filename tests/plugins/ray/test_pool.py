"""Workers of a scripted Ray: which are started, what each gets, and what becomes of those that are lost."""

from __future__ import annotations

import logging
import pickle
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from plugins.ray.scripted_ray import RayTaskError, Ref, ScriptedRay, node, stand_in
from ragauge.contract.errors import ConfigError, DataError, EngineError
from ragauge.plugins.ray import _pool
from ragauge.plugins.ray._pool import Crew, Limits, Pool, forget, pool_for

LIMITS = Limits(cpus=1.5, gpus=0.5, retries=2, patience=30.0)


@dataclass(frozen=True)
class Times:
    """Numbers times a factor; 13 is bad data, and 7 is told as a warning."""

    factor: int = 2

    def __call__(self, block: int) -> int:
        if block == 13:
            raise DataError("row 13: unlucky")
        if block == 7:
            logging.getLogger("ragauge.work").warning("seven of %d", self.factor)
            logging.getLogger("ragauge.work").info("nobody needs this")
        return self.factor * block


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> ScriptedRay:
    ray = stand_in(monkeypatch)
    ray.initialized = True
    return ray


def test_results_come_in_the_order_of_the_blocks_whoever_answers_first(ray: ScriptedRay) -> None:
    ray.order = lambda refs: list(refs)[::-1]
    pool = Pool(Times(), LIMITS)
    assert list(pool.map(range(9), 3)) == [2 * i for i in range(9)]
    assert len(ray.actors) == 3
    assert sorted(block for actor in ray.actors for block in actor.blocks) == list(range(9))
    assert pool.busy == 0


def test_a_worker_is_started_for_a_block_that_waits_and_no_more_than_may_be(ray: ScriptedRay) -> None:
    assert list(Pool(Times(), LIMITS).map([5], 4)) == [10]
    assert len(ray.actors) == 1
    assert ray.actors[0].options == {
        "num_cpus": 1.5,
        "num_gpus": 0.5,
        "max_restarts": 0,
        "max_task_retries": 0,
        "scheduling_strategy": "SPREAD",
    }
    assert list(Pool(Times(), LIMITS).map([], 4)) == []
    assert len(ray.actors) == 1


def test_four_blocks_a_worker_are_read_before_the_first_is_taken(ray: ScriptedRay) -> None:
    read: list[int] = []

    def blocks() -> Iterator[int]:
        for i in range(100):
            read.append(i)
            yield i

    ray.silent = lambda number: ray.actors[number].blocks == [0] and ray.now == 0
    results = Pool(Times(), LIMITS).map(blocks(), 2)
    assert next(results) == 0
    assert len(read) == 4 * 2
    assert next(results) == 2
    assert len(read) == 4 * 2 + 1


def test_workers_that_were_lost_are_replaced_and_their_blocks_done_again(
    ray: ScriptedRay, caplog: pytest.LogCaptureFixture
) -> None:
    ray.dies = lambda number, block: block is not None and number < 2
    assert list(Pool(Times(), LIMITS).map([4, 5, 6], 1)) == [8, 10, 12]
    assert [actor.blocks for actor in ray.actors] == [[4], [4], [4, 5, 6]]
    assert [actor.killed for actor in ray.actors] == [True, True, False]
    assert [r.getMessage() for r in caplog.records] == [
        "engine: a worker was lost; its block of rows is done again"
    ] * 2


def test_a_block_that_was_lost_is_done_again_before_those_that_wait(ray: ScriptedRay) -> None:
    ray.order = lambda refs: list(refs)[::-1]  # both are ready before one has a block
    ray.dies = lambda number, block: number == 0 and block is not None
    assert list(Pool(Times(), LIMITS).map(range(8), 2)) == [2 * i for i in range(8)]
    assert ray.given == [0, 1, 1, *range(2, 8)]


def test_who_died_with_the_node_of_a_lost_worker_gets_no_block(ray: ScriptedRay) -> None:
    gone: set[int] = set()

    def dies(number: int, block: int | None) -> bool:
        if block == 3 and not gone:
            gone.update(actor.number for actor in ray.actors)
        return number in gone

    ray.dies = dies
    ray.order = lambda refs: list(refs)[::-1]  # all are ready before one has a block
    ray.silent = lambda number: ray.actors[number].blocks == [3] and ray.now == 0  # the others are done before
    assert list(Pool(Times(), Limits(1, 0, 1, 30.0)).map([1, 2, 3], 3)) == [2, 4, 6]
    assert len(gone) == 3
    assert ray.given.count(3) == 2


def test_a_block_that_loses_its_workers_is_given_up_after_the_retries(ray: ScriptedRay) -> None:
    ray.dies = lambda number, block: block == 6
    pool = Pool(Times(), LIMITS)
    found = pool.map([4, 5, 6], 1)
    assert [next(found), next(found)] == [8, 10]
    with pytest.raises(EngineError) as told:
        next(found)
    assert str(told.value) == (
        "engine: the worker of one block of rows was lost 3 times (worker 2 is gone); if it lacks memory, "
        "fewer engine.workers or a smaller engine.block_rows may do"
    )
    assert all(actor.killed for actor in ray.actors)
    assert pool.busy == 0


def test_idle_workers_that_died_meanwhile_get_no_block_and_count_as_no_failure(ray: ScriptedRay) -> None:
    ray.order = lambda refs: list(refs)[::-1]  # all are ready before one has a block
    pool = Pool(Times(), Limits(1, 0, 0, 30.0))
    assert list(pool.map([1, 2, 3], 3)) == [2, 4, 6]
    gone = {actor.number for actor in ray.actors}
    ray.dies = lambda number, block: number in gone
    assert list(pool.map([4, 5, 6], 3)) == [8, 10, 12]
    assert len(gone) == 3
    assert [actor.killed for actor in ray.actors] == [True] * 3 + [False] * (len(ray.actors) - 3)


def test_workers_that_end_before_they_begin_are_told_after_the_retries(ray: ScriptedRay) -> None:
    ray.dies = lambda number, block: block is None and number < 2
    assert list(Pool(Times(), LIMITS).map([1], 1)) == [2]
    ray.dies = lambda number, block: block is None
    with pytest.raises(EngineError, match=r"^engine: workers end before they begin; Ray's logs say why$"):
        list(Pool(Times(), LIMITS).map([1], 1))
    assert len(ray.actors) == 3 + 3


def test_a_first_worker_is_waited_for_as_long_as_patience_says(ray: ScriptedRay) -> None:
    ray.node_rows = [node("n1", CPU=2.0, GPU=1.0), node("n2", CPU=4.0)]
    ray.silent = lambda number: True
    with pytest.raises(EngineError) as told:
        list(Pool(Times(), LIMITS).map([1], 2))
    assert str(told.value) == (
        "engine: no worker could be had within engine.patience=30 seconds: each wants 1.5 CPU and 0.5 GPU, "
        "and the nodes have 2 CPU and 1 GPU, 4 CPU and 0 GPU, some of it in use"
    )
    assert ray.waited == [10.0] * 4
    ray.node_rows, ray.waited = [], []
    with pytest.raises(EngineError, match="and the nodes have nothing, some of it in use"):
        list(Pool(Times(), Limits(1, 0, 2, 3.0)).map([1], 2))
    assert ray.waited == [3.0] * 2


def test_neither_long_work_nor_a_slow_reader_is_impatience(ray: ScriptedRay) -> None:
    pool = Pool(Times(), LIMITS)
    found = pool.map([1, 2, 3], 1)
    for expected in (2, 4, 6):
        assert next(found) == expected
        ray.now += 1000  # whoever reads takes long
    assert next(found, None) is None
    ray.silent = lambda number: ray.actors[number].blocks[-1:] == [8] and ray.now < 5000
    ray.now = 0.0
    assert list(pool.map([8], 1)) == [16]  # a block that takes 5,000 seconds
    assert ray.now == 5000


def test_who_takes_no_more_results_ends_the_workers_that_are_at_work(ray: ScriptedRay) -> None:
    ray.order = lambda refs: list(refs)[::-1]  # both are ready before one has a block
    ray.silent = lambda number: ray.actors[number].blocks == [2]
    pool = Pool(Times(), LIMITS)
    found = pool.map([1, 2, 3, 4, 5], 2)
    assert next(found) == 2
    assert pool.busy == 1
    found.close()  # type: ignore[attr-defined]
    assert pool.busy == 0
    assert [actor.killed for actor in ray.actors if actor.blocks == [2]] == [True]
    pool.close()
    assert all(actor.killed for actor in ray.actors)
    n = len(ray.actors)
    assert list(pool.map([6], 2)) == [12]  # by a new one
    assert len(ray.actors) == n + 1


def test_workers_that_have_not_answered_yet_are_ended_and_forgotten_too(ray: ScriptedRay) -> None:
    ray.silent = lambda number: number == 1
    pool = Pool(Times(), Limits(1, 0, 0, 30.0))
    assert list(pool.map([1, 2], 2)) == [2, 4]
    pool.close()
    assert [actor.killed for actor in ray.actors] == [True, True]
    ray.silent = lambda number: False
    assert list(pool.map([3], 1)) == [6]
    assert [actor.blocks for actor in ray.actors] == [[1, 2], [], [3]]


def test_an_error_of_the_work_is_raised_as_it_is_and_the_others_go_on_later(ray: ScriptedRay) -> None:
    pool = Pool(Times(), LIMITS)
    with pytest.raises(DataError, match=r"^row 13: unlucky$"):
        list(pool.map([13], 1))
    assert list(pool.map([3], 1)) == [6]


@pytest.mark.parametrize("cause", [None, "no exception"])
def test_an_error_without_a_cause_is_raised_as_ray_tells_it(ray: ScriptedRay, cause: Any) -> None:
    def fails() -> Any:
        raise RayTaskError("told by Ray", cause)

    with pytest.raises(RayTaskError, match="told by Ray"):
        _pool._received(Ref(fails))


def test_warnings_of_workers_are_heard_here_once(ray: ScriptedRay, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ragauge")
    before = list(logging.getLogger("ragauge").handlers)
    worker = _pool._Actor(_pool._pickled(Times(5)))
    result, told = pickle.loads(worker.do(pickle.dumps(7)))
    assert result == 35
    assert told == [("ragauge.work", logging.WARNING, "seven of 5")]
    assert logging.getLogger("ragauge").handlers == before
    caplog.clear()
    ray.get = lambda ref: pickle.dumps((35, [("ragauge.work", logging.WARNING, "100 % of it")]))  # type: ignore[method-assign]
    assert _pool._received(None) == 35
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("ragauge.work", "WARNING", "100 % of it")
    ]


def test_work_that_a_worker_cannot_load_is_an_error_of_its_block_that_names_the_machine() -> None:
    with pytest.raises(ConfigError) as told:
        _pool._Actor(b"no pickle").do(b"")
    assert str(told.value).startswith(
        f"engine: the worker on {socket.gethostname()} cannot load its work (UnpicklingError: "
    )
    assert str(told.value).endswith("): every machine needs the same packages")


def test_work_that_cannot_be_sent_is_told_before_a_worker_starts(ray: ScriptedRay) -> None:
    with pytest.raises(ConfigError, match=r"^engine=ray: lock cannot be sent to workers \(.*\): engine=local"):
        Pool(threading.Lock(), LIMITS)  # type: ignore[arg-type]
    assert not ray.actors


class TestPools:
    def test_equal_work_finds_its_workers_again(self, ray: ScriptedRay) -> None:
        assert list(pool_for(Times(2), LIMITS).map([1], 1)) == [2]
        assert list(pool_for(Times(2), LIMITS).map([2], 1)) == [4]
        assert [actor.blocks for actor in ray.actors] == [[1, 2]]

    @pytest.mark.parametrize("other", [(Times(3), LIMITS), (Times(2), Limits(1, 0, 2, 30.0))])
    def test_other_work_ends_them(self, ray: ScriptedRay, other: tuple[Any, Limits]) -> None:
        list(pool_for(Times(2), LIMITS).map([1], 1))
        list(pool_for(*other).map([1], 1))
        assert [actor.killed for actor in ray.actors] == [True, False]
        assert len(_pool._pools) == 1

    def test_but_not_while_somebody_waits_for_their_results(self, ray: ScriptedRay) -> None:
        ray.order = lambda refs: list(refs)[::-1]  # both are ready before one has a block
        ray.silent = lambda number: ray.actors[number].blocks == [2]
        found = pool_for(Times(2), LIMITS).map([1, 2], 2)
        assert next(found) == 2  # one has nothing to do, one is at work
        ray.silent = lambda number: False
        assert list(pool_for(Times(3), LIMITS).map([1], 1)) == [3]
        assert next(found) == 4
        assert len(_pool._pools) == 2
        assert not any(actor.killed for actor in ray.actors)
        forget()
        assert not _pool._pools

    def test_work_that_does_not_compare_is_other_work(self, ray: ScriptedRay) -> None:
        class Odd:
            def __eq__(self, other: object) -> bool:
                raise ValueError("the truth value of an array")

            def __call__(self, block: int) -> int:
                return block

        assert not _pool._equal(Odd(), Odd())
        assert _pool._equal(Times(2), Times(2))


class TestCrew:
    def test_each_work_has_an_actor_on_a_node_of_its_own_in_turn(self, ray: ScriptedRay) -> None:
        ray.node_rows = [node("n1", CPU=1.0), node("n2", CPU=1.0)]
        crew = Crew([Times(2), Times(3), Times(4)], LIMITS)
        assert crew.ask(5) == [10, 15, 20]
        assert crew.ask(6) == [12, 18, 24]
        assert [actor.options for actor in ray.actors] == [
            {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": (name, True)}
            for name in ("n1", "n2", "n1")
        ]
        assert ray.put_blocks == 2  # a block travels once, to all

    def test_one_that_is_lost_is_replaced_on_the_next_node_and_asked_again(
        self, ray: ScriptedRay, caplog: pytest.LogCaptureFixture
    ) -> None:
        ray.node_rows = [node("n1", CPU=1.0), node("n2", CPU=1.0), node("n3", CPU=1.0)]
        crew = Crew([Times(2), Times(3)], LIMITS)
        ray.dies = lambda number, block: number in (1, 2)
        assert crew.ask(5) == [10, 15]
        assert [actor.options["scheduling_strategy"][0] for actor in ray.actors] == ["n1", "n2", "n3", "n1"]
        assert [actor.killed for actor in ray.actors] == [False, True, True, False]
        assert [r.getMessage() for r in caplog.records] == [
            "engine: a worker was lost; what it held is loaded again elsewhere"
        ] * 2
        ray.dies = lambda number, block: False
        assert crew.ask(6) == [12, 18]
        assert len(ray.actors) == 4

    def test_it_is_given_up_after_the_retries(self, ray: ScriptedRay) -> None:
        ray.dies = lambda number, block: number > 0
        with pytest.raises(EngineError, match=r"^engine: the worker of one block of rows was lost 3 times"):
            Crew([Times(2), Times(3)], LIMITS).ask(5)
        assert len(ray.actors) == 2 + 2


def test_without_a_connection_no_worker_is_ended_since_that_would_start_a_ray(ray: ScriptedRay) -> None:
    pool = Pool(Times(), LIMITS)
    assert list(pool.map([1], 1)) == [2]
    ray.initialized = False
    pool.close()
    assert not ray.actors[0].killed
