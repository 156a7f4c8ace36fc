"""Workers as Ray actors: blocks in, results out in order, even if actors or nodes are lost.

Ray restarts none of them: what a lost one had at hand is done again by another, and a new one takes its place
where there is room. Blocks and results travel as bytes, so that no result is a view of Ray's shared memory.
"""

from __future__ import annotations

import logging
import pickle
import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ragauge.contract.engine import Work
from ragauge.contract.errors import ConfigError, EngineError
from ragauge.plugins.ray._cluster import nodes

log = logging.getLogger(__name__)

_AHEAD = 4  # blocks of each worker that are read before the first of them is taken
_LOOK = 10.0  # seconds between two looks at how long a worker has been waited for


@dataclass(frozen=True)
class Limits:
    """Cores and GPUs of a worker, retries of a block, seconds to wait for a first worker."""

    cpus: float
    gpus: float
    retries: int
    patience: float


class _Actor:
    """One worker, which unpickles its work at the first block, so that an unpickling error counts as the block's."""

    def __init__(self, pickled: bytes) -> None:
        self._pickled = pickled
        self._work: Work | None = None

    def ready(self) -> bool:
        return True

    def do(self, block: bytes) -> bytes:
        """The pickled result, and the warnings logged meanwhile."""
        if self._work is None:
            try:
                self._work = pickle.loads(self._pickled)
            except Exception as error:
                raise ConfigError(
                    f"engine: the worker on {socket.gethostname()} cannot load its work "
                    f"({type(error).__name__}: {error}): every machine needs the same packages"
                ) from None
        heard = _Heard()
        logger = logging.getLogger("ragauge")
        logger.addHandler(heard)
        try:
            return pickle.dumps((self._work(pickle.loads(block)), heard.told), protocol=5)
        finally:
            logger.removeHandler(heard)


class _Heard(logging.Handler):
    """Collects warnings, which would be lost in a worker's output."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append((record.name, record.levelno, record.getMessage()))


@dataclass
class _Task:
    number: int
    block: bytes
    lost: int = 0


class Pool:
    """Workers of one kind, started on demand; replaces a lost one."""

    def __init__(self, work: Work, limits: Limits) -> None:
        self.work = work
        self.limits = limits
        self.busy = 0
        self._pickled = _pickled(work)
        self._idle: list[Any] = []
        # By the reference that is there when it answers: a worker, and whether it is new.
        self._starting: dict[Any, tuple[Any, bool]] = {}

    def map(self, blocks: Iterable[Any], most: int) -> Iterator[Any]:
        """The results of the blocks in order, by at most so many workers at a time; see `Engine.map`."""
        import ray

        source = enumerate(blocks)
        waiting: deque[_Task] = deque()
        running: dict[Any, tuple[Any, _Task]] = {}
        done: dict[int, Any] = {}
        read = taken = dead = 0
        more = True
        self.busy += 1
        self._look_after()
        alone_since = time.monotonic()
        try:
            while True:
                while more and len(waiting) < most and read - taken < _AHEAD * most:
                    number, block = next(source, (None, None))
                    if number is None:
                        more = False
                    else:
                        waiting.append(_Task(number, pickle.dumps(block, protocol=5)))
                        read += 1
                while waiting and self._idle:
                    actor, task = self._idle.pop(), waiting.popleft()
                    running[actor.do.remote(task.block)] = actor, task
                while len(self._starting) < len(waiting) and len(running) + len(self._starting) < most:
                    self._start()
                if taken in done:
                    yield done.pop(taken)
                    taken += 1
                    continue
                if not (waiting or running or more):
                    return
                if running:
                    alone_since = time.monotonic()
                elif time.monotonic() - alone_since > self.limits.patience:
                    raise EngineError(self._no_worker())
                timeout = min(_LOOK, self.limits.patience)
                ready, _ = ray.wait([*running, *self._starting], num_returns=1, timeout=timeout)
                for ref in ready:
                    if ref in self._starting:
                        dead += self._started(ref)
                        if dead > self.limits.retries:
                            raise EngineError("engine: workers end before they begin; Ray's logs say why")
                        continue
                    actor, task = running.pop(ref)
                    found = _received(ref)
                    if isinstance(found, _Lost):
                        task.lost += 1
                        _end(actor)
                        if task.lost > self.limits.retries:
                            raise EngineError(_lost_often(task.lost, found))
                        log.warning("engine: a worker was lost; its block of rows is done again")
                        waiting.appendleft(task)
                        self._look_after()
                    else:
                        done[task.number] = found
                        self._idle.append(actor)
        finally:
            # Whoever took no more results, or an error, leaves workers behind that are at work.
            for actor, _ in running.values():
                _end(actor)
            self.busy -= 1

    def close(self) -> None:
        """Ends the workers."""
        for actor in [*self._idle, *(actor for actor, _ in self._starting.values())]:
            _end(actor)
        self._idle, self._starting = [], {}

    def _start(self) -> None:
        import ray

        remote: Any = ray.remote(_Actor)
        actor = remote.options(
            num_cpus=self.limits.cpus,
            num_gpus=self.limits.gpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        ).remote(self._pickled)
        self._starting[actor.ready.remote()] = actor, True

    def _started(self, ref: Any) -> bool:
        """Makes a worker that answered idle; returns whether it was new and has died."""
        actor, new = self._starting.pop(ref)
        if isinstance(_received(ref, plain=True), _Lost):
            _end(actor)
            return new
        self._idle.append(actor)
        return False

    def _look_after(self) -> None:
        """Pings idle workers before they get a block: they may have died with their node."""
        self._starting |= {actor.ready.remote(): (actor, False) for actor in self._idle}
        self._idle = []

    def _no_worker(self) -> str:
        wants = f"{self.limits.cpus:g} CPU and {self.limits.gpus:g} GPU"
        has = ", ".join(
            f"{node['Resources'].get('CPU', 0):g} CPU and {node['Resources'].get('GPU', 0):g} GPU" for node in nodes()
        )
        return (
            f"engine: no worker could be had within engine.patience={self.limits.patience:g} seconds: each "
            f"wants {wants}, and the nodes have {has or 'nothing'}, some of it in use"
        )


class Crew:
    """One worker per work, spread over the nodes; see `Engine.hold`."""

    def __init__(self, works: Sequence[Work], limits: Limits) -> None:
        self._pickled = [_pickled(work) for work in works]
        self._limits = limits
        self._actors: list[Any] = []

    def ask(self, block: Any) -> list[Any]:
        """The workers' results for the block; replaces a lost worker and asks again."""
        import ray

        self._actors = self._actors or [self._started(number, 0) for number in range(len(self._pickled))]
        sent = ray.put(pickle.dumps(block, protocol=5))
        refs = [actor.do.remote(sent) for actor in self._actors]
        return [self._answer(number, ref, sent) for number, ref in enumerate(refs)]

    def _answer(self, number: int, ref: Any, sent: Any) -> Any:
        lost = 0
        while isinstance(found := _received(ref), _Lost):
            lost += 1
            _end(self._actors[number])
            if lost > self._limits.retries:
                raise EngineError(_lost_often(lost, found))
            log.warning("engine: a worker was lost; what it held is loaded again elsewhere")
            self._actors[number] = self._started(number, lost)
            ref = self._actors[number].do.remote(sent)
        return found

    def _started(self, number: int, turn: int) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # No core is reserved: shards are as many as the index has, and wait for questions most of the time.
        there = nodes()
        node = there[(number + turn) % len(there)]["NodeID"]
        remote: Any = ray.remote(_Actor)
        return remote.options(
            num_cpus=0,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True),
        ).remote(self._pickled[number])


@dataclass(frozen=True)
class _Lost:
    """No result arrived; holds Ray's message."""

    reason: str


def _received(ref: Any, plain: bool = False) -> Any:
    """A result, or _Lost if its worker or node is; raises an error of the work unchanged."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        found = ray.get(ref)
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        raise cause if isinstance(cause, Exception) else error from None
    except RayError as error:
        return _Lost((str(error).strip() or type(error).__name__).splitlines()[0])
    if plain:
        return found
    result, told = pickle.loads(found)
    for name, level, message in told:
        logging.getLogger(name).log(level, message)
    return result


def _lost_often(times: int, lost: _Lost) -> str:
    return (
        f"engine: the worker of one block of rows was lost {times} times ({lost.reason}); if it lacks "
        "memory, fewer engine.workers or a smaller engine.block_rows may do"
    )


def _pickled(work: Work) -> bytes:
    import ray

    try:
        pickled: bytes = ray.cloudpickle.dumps(work)
    except Exception as error:
        raise ConfigError(
            f"engine=ray: {type(work).__name__} cannot be sent to workers ({error}): engine=local"
        ) from error
    return pickled


def _end(actor: Any) -> None:
    import ray

    if ray.is_initialized():  # else ray.kill would start a Ray of its own, with a dashboard
        with suppress(Exception):  # it may be gone, and Ray with it
            ray.kill(actor)


_pools: list[Pool] = []


def pool_for(work: Work, limits: Limits) -> Pool:
    """The workers for this work; ends those for other work, unless a caller waits for them."""
    for pool in _pools:
        if pool.limits == limits and _equal(pool.work, work):
            return pool
    for pool in _pools:
        if not pool.busy:
            pool.close()
    _pools[:] = [pool for pool in _pools if pool.busy]
    _pools.append(Pool(work, limits))
    return _pools[-1]


def forget() -> None:
    """Forgets workers of an ended connection to Ray."""
    _pools.clear()


def _equal(one: Work, other: Work) -> bool:
    try:
        return bool(one == other)
    except Exception:  # of a component whose values do not compare
        return False
