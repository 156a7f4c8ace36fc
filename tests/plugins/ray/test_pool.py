"""Workers of a scripted Ray: which are started, what each gets, and what becomes of those that are lost."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from plugins.ray.scripted_ray import RayTaskError, ScriptedRay, node, stand_in
from ragauge.contract.errors import ConfigError, DataError, EngineError
from ragauge.plugins.ray.engine import RayEngine


def engine(workers: int, **changed: Any) -> RayEngine:
    """So many workers, each with one and a half cores and half a GPU; a block is lost at most twice."""
    given = {"worker_cpus": 1.5, "worker_gpus": 0.5, "retries": 2, "patience": 30.0}
    return RayEngine(workers=workers, **{**given, **changed})


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
    ray.node_rows = [node("n1", CPU=9.0, GPU=3.0)]
    return ray


def test_results_come_in_the_order_of_the_blocks_whoever_answers_first(ray: ScriptedRay) -> None:
    ray.order = lambda refs: list(refs)[::-1]
    assert list(engine(3).map(Times(), range(9))) == [2 * i for i in range(9)]
    assert len(ray.actors) == 3
    assert sorted(block for actor in ray.actors for block in actor.blocks) == list(range(9))


def test_a_worker_is_started_for_a_block_that_waits_and_no_more_than_may_be(ray: ScriptedRay) -> None:
    assert list(engine(4).map(Times(), [5])) == [10]
    assert len(ray.actors) == 1
    assert ray.actors[0].options == {
        "num_cpus": 1.5,
        "num_gpus": 0.5,
        "max_restarts": 0,
        "max_task_retries": 0,
        "scheduling_strategy": "SPREAD",
    }
    assert list(engine(4).map(Times(), [])) == []
    assert len(ray.actors) == 1


def test_four_blocks_a_worker_are_read_before_the_first_is_taken(ray: ScriptedRay) -> None:
    read: list[int] = []

    def blocks() -> Iterator[int]:
        for i in range(100):
            read.append(i)
            yield i

    ray.silent = lambda number: ray.actors[number].blocks == [0] and ray.now == 0
    results = engine(2).map(Times(), blocks())
    assert next(results) == 0
    assert len(read) == 4 * 2
    assert next(results) == 2
    assert len(read) == 4 * 2 + 1


def test_workers_that_were_lost_are_replaced_and_their_blocks_done_again(
    ray: ScriptedRay, caplog: pytest.LogCaptureFixture
) -> None:
    ray.dies = lambda number, block: block is not None and number < 2
    assert list(engine(1).map(Times(), [4, 5, 6])) == [8, 10, 12]
    assert [actor.blocks for actor in ray.actors] == [[4], [4], [4, 5, 6]]
    assert [actor.killed for actor in ray.actors] == [True, True, False]
    assert [r.getMessage() for r in caplog.records] == [
        "engine: a worker was lost; its block of rows is done again"
    ] * 2


def test_a_block_that_was_lost_is_done_again_before_those_that_wait(ray: ScriptedRay) -> None:
    ray.order = lambda refs: list(refs)[::-1]  # both are ready before one has a block
    ray.dies = lambda number, block: number == 0 and block is not None
    assert list(engine(2).map(Times(), range(8))) == [2 * i for i in range(8)]
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
    assert list(engine(3, worker_gpus=0, retries=1).map(Times(), [1, 2, 3])) == [2, 4, 6]
    assert len(gone) == 3
    assert ray.given.count(3) == 2


def test_a_block_that_loses_its_workers_is_given_up_after_the_retries(ray: ScriptedRay) -> None:
    ray.dies = lambda number, block: block == 6
    found = engine(1).map(Times(), [4, 5, 6])
    assert [next(found), next(found)] == [8, 10]
    with pytest.raises(EngineError) as told:
        next(found)
    assert str(told.value) == (
        "engine: the worker of one block of rows was lost 3 times (worker 2 is gone); if it lacks memory, "
        "fewer engine.workers or a smaller engine.block_rows may do"
    )
    assert all(actor.killed for actor in ray.actors)


def test_idle_workers_that_died_meanwhile_get_no_block_and_count_as_no_failure(ray: ScriptedRay) -> None:
    ray.order = lambda refs: list(refs)[::-1]  # all are ready before one has a block
    assert list(engine(3).map(Times(), [1, 2, 3])) == [2, 4, 6]
    gone = {actor.number for actor in ray.actors}
    ray.dies = lambda number, block: number in gone
    assert list(engine(3).map(Times(), [4, 5, 6])) == [8, 10, 12]
    assert len(gone) == 3
    assert [actor.killed for actor in ray.actors] == [True] * 3 + [False] * (len(ray.actors) - 3)


def test_workers_that_end_before_they_begin_are_told_after_the_retries(ray: ScriptedRay) -> None:
    ray.dies = lambda number, block: block is None and number < 2
    assert list(engine(1).map(Times(), [1])) == [2]
    ray.dies = lambda number, block: block is None
    with pytest.raises(EngineError, match=r"^engine: workers end before they begin; Ray's logs say why$"):
        list(engine(1).map(Times(), [1]))
    assert len(ray.actors) == 3 + 3


def test_a_first_worker_is_waited_for_as_long_as_patience_says(ray: ScriptedRay) -> None:
    ray.node_rows = [node("n1", CPU=2.0, GPU=1.0), node("n2", CPU=4.0)]
    ray.silent = lambda number: True
    with pytest.raises(EngineError) as told:
        list(engine(2).map(Times(), [1]))
    assert str(told.value) == (
        "engine: no worker could be had within engine.patience=30 seconds: each wants 1.5 CPU and 0.5 GPU, "
        "and the nodes have 2 CPU and 1 GPU, 4 CPU and 0 GPU, some of it in use"
    )
    assert ray.waited == [10.0] * 4
    ray.node_rows, ray.waited = [], []
    with pytest.raises(EngineError, match="and the nodes have nothing, some of it in use"):
        list(engine(2, worker_gpus=0, patience=3.0).map(Times(), [1]))
    assert ray.waited == [3.0] * 2


def test_neither_long_work_nor_a_slow_reader_is_impatience(ray: ScriptedRay) -> None:
    found = engine(1).map(Times(), [1, 2, 3])
    for expected in (2, 4, 6):
        assert next(found) == expected
        ray.now += 1000  # whoever reads takes long
    assert next(found, None) is None
    ray.silent = lambda number: ray.actors[number].blocks[-1:] == [8] and ray.now < 5000
    ray.now = 0.0
    assert list(engine(1).map(Times(), [8])) == [16]  # a block that takes 5,000 seconds
    assert ray.now == 5000


def test_who_takes_no_more_results_ends_the_workers_that_are_at_work(ray: ScriptedRay) -> None:
    ray.order = lambda refs: list(refs)[::-1]  # both are ready before one has a block
    ray.silent = lambda number: ray.actors[number].blocks == [2]
    found = engine(2).map(Times(), [1, 2, 3, 4, 5])
    assert next(found) == 2
    found.close()  # type: ignore[attr-defined]
    assert [actor.killed for actor in ray.actors if actor.blocks == [2]] == [True]
    end_workers()
    assert all(actor.killed for actor in ray.actors)


def end_workers() -> None:
    """Other work comes, and is none."""
    assert list(engine(1).map(Times(9), [])) == []


def test_workers_that_have_not_answered_yet_are_ended_and_forgotten_too(ray: ScriptedRay) -> None:
    ray.silent = lambda number: number == 1
    assert list(engine(2).map(Times(), [1, 2])) == [2, 4]
    end_workers()
    assert [actor.killed for actor in ray.actors] == [True, True]
    ray.silent = lambda number: False
    assert list(engine(1).map(Times(), [3])) == [6]
    assert [actor.blocks for actor in ray.actors] == [[1, 2], [], [3]]


def test_an_error_of_the_work_is_raised_as_it_is_and_the_others_go_on_later(ray: ScriptedRay) -> None:
    with pytest.raises(DataError, match=r"^row 13: unlucky$"):
        list(engine(1).map(Times(), [13]))
    assert list(engine(1).map(Times(), [3])) == [6]
    for cause in (None, "no exception"):
        ray.errors_have = cause  # type: ignore[assignment]
        with pytest.raises(RayTaskError, match="the work failed"):
            list(engine(1).map(Times(), [13]))


def test_warnings_of_workers_are_heard_here_once(ray: ScriptedRay, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ragauge")
    before = list(logging.getLogger("ragauge").handlers)
    assert list(engine(1).map(Times(5), [7, 1])) == [35, 5]
    assert logging.getLogger("ragauge").handlers == before
    # One in the worker, which is this process here, and one that is told here.
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == ["seven of 5"] * 2


class Unreadable(Times):
    """Cannot be loaded where it arrives."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_work_that_a_worker_cannot_load_is_an_error_of_its_block_that_names_the_machine(ray: ScriptedRay) -> None:
    told = (
        rf"^engine: the worker on {socket.gethostname()} cannot load its work \(ValueError: .*\): every machine needs"
    )
    with pytest.raises(ConfigError, match=told):
        list(engine(1).map(Unreadable(), [1]))


def test_work_that_cannot_be_sent_is_told_before_a_worker_starts(ray: ScriptedRay) -> None:
    with pytest.raises(ConfigError, match=r"^engine=ray: lock cannot be sent to workers \(.*\): engine=local"):
        engine(1).map(threading.Lock(), [1])  # type: ignore[arg-type]
    assert not ray.actors


class Odd(Times):
    """Does not compare, as arrays do not."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value of an array")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("work", "changed", "ended"),
    [(Times(2), {}, False), (Times(3), {}, True), (Times(2), {"worker_cpus": 1}, True), (Odd(2), {}, True)],
)
def test_workers_are_those_of_equal_work_alone(
    ray: ScriptedRay, work: Times, changed: dict[str, Any], ended: bool
) -> None:
    first = Odd(2) if isinstance(work, Odd) else Times(2)
    assert list(engine(1).map(first, [1])) == [2]
    assert list(engine(1, **changed).map(work, [2])) == [2 * work.factor]
    assert [actor.killed for actor in ray.actors] == ([True, False] if ended else [False])


def test_workers_for_whose_results_somebody_waits_are_not_ended_by_other_work(ray: ScriptedRay) -> None:
    ray.order = lambda refs: list(refs)[::-1]  # both are ready before one has a block
    ray.silent = lambda number: ray.actors[number].blocks == [2]
    found = engine(2).map(Times(2), [1, 2])
    assert next(found) == 2  # one has nothing to do, one is at work
    ray.silent = lambda number: False
    assert list(engine(1).map(Times(3), [1])) == [3]
    assert next(found) == 4
    assert not any(actor.killed for actor in ray.actors)


class TestCrew:
    def test_each_work_has_an_actor_on_a_node_of_its_own_in_turn(self, ray: ScriptedRay) -> None:
        ray.node_rows = [node("n1", CPU=1.0), node("n2", CPU=1.0)]
        crew = engine(1).hold([Times(2), Times(3), Times(4)])
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
        crew = engine(1).hold([Times(2), Times(3)])
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
            engine(1).hold([Times(2), Times(3)]).ask(5)
        assert len(ray.actors) == 2 + 2


def test_without_a_connection_no_worker_is_ended_since_that_would_start_a_ray(ray: ScriptedRay) -> None:
    assert list(engine(1).map(Times(), [1])) == [2]
    ray.initialized = False
    end_workers()
    assert not ray.actors[0].killed
