"""A Ray in this process, whose workers answer, die or keep silent as a test says; time passes as it waits.

Of Ray's interface what ragauge's engine uses, by the same names; what Ray itself does with it is tried in
test_ray_here.py and test_killed_nodes.py.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from patched import instead_of
from ragauge.plugins.ray import _cluster, _pool

_MOST = 1000  # workers, and times that somebody waits for them


class RayError(Exception):
    """Ray's own: a worker or a node is gone."""


class RayTaskError(RayError):
    """An error of the work, of which Ray may know the cause."""

    def __init__(self, said: str, cause: Any = None) -> None:
        super().__init__(said)
        self.cause = cause


@dataclass(eq=False)
class Ref:
    """What a call of a worker, or something put, will be."""

    made: Callable[[], Any]
    actor: int | None = None


@dataclass(eq=False)
class Actor:
    """A worker; `blocks` are those it was given, unpickled."""

    number: int
    options: dict[str, Any]
    instance: Any
    ray: ScriptedRay
    blocks: list[Any] = field(default_factory=list)
    killed: bool = False

    @property
    def ready(self) -> Any:
        return SimpleNamespace(remote=self._ready)

    @property
    def do(self) -> Any:
        return SimpleNamespace(remote=self._do)

    def _ready(self) -> Ref:
        def answer() -> bool:
            if self.ray.dies(self.number, None) or self.killed:
                raise RayError(f"worker {self.number} is gone\nwith its node")
            return bool(self.instance.ready())

        return Ref(answer, self.number)

    def _do(self, block: bytes | Ref) -> Ref:
        pickled = block.made() if isinstance(block, Ref) else block
        given = pickle.loads(pickled)
        self.blocks.append(given)
        self.ray.given.append(given)

        def answer() -> Any:
            if self.ray.dies(self.number, given):
                raise RayError(f"worker {self.number} is gone\nwith its node")
            try:
                return self.instance.do(pickled)
            except Exception as error:
                cause = error if self.ray.errors_have is ... else self.ray.errors_have
                raise RayTaskError("the work failed", cause) from error

        return Ref(answer, self.number)


class ScriptedRay(ModuleType):
    """Stands for `ray`.

    dies: of a worker's number and the block it has, None before its first, whether it dies. silent: whether
    a worker does not answer, by its number. order: which of the answers come first.
    """

    def __init__(self) -> None:
        super().__init__("ray")
        self.__spec__ = ModuleSpec("ray", None)
        self.actors: list[Actor] = []
        self.given: list[Any] = []  # blocks, in the order in which workers got them
        self.waits = 0
        self.now = 0.0
        self.waited: list[float] = []
        self.put_blocks = 0
        self.started: list[tuple[str, dict[str, Any]]] = []
        self.failures: list[Exception] = []
        self.shutdowns = 0
        self.initialized = False
        self.dies: Callable[[int, Any], bool] = lambda number, block: False
        self.silent: Callable[[int], bool] = lambda number: False
        self.order: Callable[[Sequence[Ref]], Sequence[Ref]] = lambda refs: refs
        self.node_rows: list[dict[str, Any]] = [node("n1", CPU=2.0)]
        self.errors_have: Any = ...  # the cause of an error of the work; ... is that error
        self.cloudpickle = pickle
        self._private = SimpleNamespace(worker=SimpleNamespace(_worker_logs_enabled=True))

    # --- the names of Ray -------------------------------------------------------------------------------

    def init(self, address: str, **given: Any) -> None:
        self.started.append((address, given))
        if self.failures:
            raise self.failures.pop(0)
        self.initialized = True

    def is_initialized(self) -> bool:
        return self.initialized

    def shutdown(self) -> None:
        self.shutdowns += 1

    def nodes(self) -> list[dict[str, Any]]:
        return self.node_rows

    def put(self, value: bytes) -> Ref:
        self.put_blocks += 1
        return Ref(lambda: value)

    def remote(self, of: type) -> Any:
        def options(**given: Any) -> Any:
            def made(*args: Any) -> Actor:
                assert len(self.actors) < _MOST, "starts workers for ever"
                self.actors.append(Actor(len(self.actors), given, of(*args), self))
                return self.actors[-1]

            return SimpleNamespace(remote=made)

        return SimpleNamespace(options=options)

    def wait(self, refs: Sequence[Ref], num_returns: int, timeout: float) -> tuple[Sequence[Ref], Sequence[Ref]]:
        self.waits += 1
        assert self.waits < _MOST, "waits for ever"
        answering = [ref for ref in self.order(refs) if ref.actor is None or not self.silent(ref.actor)]
        if not answering:
            self.now += timeout
            self.waited.append(timeout)
        ready = answering[:num_returns]
        return ready, [ref for ref in refs if ref not in ready]

    def get(self, ref: Ref) -> Any:
        return ref.made()

    def kill(self, actor: Actor) -> None:
        actor.killed = True


def node(name: str, alive: bool = True, **resources: float) -> dict[str, Any]:
    """A row of `ray.nodes()`."""
    return {"NodeID": name, "Alive": alive, "Resources": resources}


def stand_in(monkeypatch: pytest.MonkeyPatch) -> ScriptedRay:
    """A scripted Ray in place of `ray`, and its time in place of the engine's."""
    ray = ScriptedRay()
    exceptions: Any = ModuleType("ray.exceptions")
    exceptions.RayError, exceptions.RayTaskError = RayError, RayTaskError
    strategies: Any = ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda node_id, soft: (node_id, soft)
    for name, module in {
        "ray": ray,
        "ray.exceptions": exceptions,
        "ray.util": ModuleType("ray.util"),
        "ray.util.scheduling_strategies": strategies,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(_pool, "time", instead_of(time, monotonic=lambda: ray.now))
    monkeypatch.setattr(_pool, "_pools", [])
    for name in (_cluster._NO_REPORTS, _cluster._ALONE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return ray
