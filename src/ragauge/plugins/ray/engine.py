"""`engine=ray`: Ray actors, each with a model, process blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ragauge.contract.checks import require, require_count, require_number
from ragauge.contract.engine import Engine, Held, Work
from ragauge.contract.extras import require_extra
from ragauge.contract.option import CONF, option
from ragauge.plugins.ray._cluster import connect, room
from ragauge.plugins.ray._pool import Crew, Limits, forget, pool_for

_BLOCKS_AT_ONCE = 4  # of each worker, where results are written down together


@option("engine/ray")
class RayEngine(Engine):
    """Workers on the nodes of a Ray cluster, or of this machine.

    address: that of the cluster; None starts Ray here, with num_cpus cores (None: all) and object_store_mb of memory
        for blocks on their way.
    workers: at a time; None: as many as the cluster has room for, each with worker_cpus and worker_gpus.
    block_rows: rows of a block. retries: how often a block is done again whose worker was lost.
    patience: seconds to wait for a first worker. shards: the number for an exact dense search.
    """

    address: str | None = CONF
    num_cpus: int | None = CONF
    object_store_mb: int = CONF
    workers: int | None = CONF
    worker_cpus: float = CONF
    worker_gpus: float = CONF
    block_rows: int = CONF
    retries: int = CONF
    patience: float = CONF
    shards: int = CONF

    def __post_init__(self) -> None:
        named = self.address is None or (isinstance(self.address, str) and bool(self.address.strip()))
        named = named and "://" not in str(self.address)  # Ray's client protocol does not know all of this
        require("engine.address", self.address, named, "auto, host:port of a cluster's head, and null (here)")
        require_count("engine.num_cpus", self.num_cpus, null="all cores of this machine")
        require_count("engine.object_store_mb", self.object_store_mb, 80, "megabytes")
        require_count("engine.workers", self.workers, null="as many as there is room for")
        for key in ("block_rows", "shards"):
            require_count(f"engine.{key}", getattr(self, key))
        require_count("engine.retries", self.retries, 0)
        require_number("engine.worker_cpus", self.worker_cpus, 0, above=True)
        require_number("engine.worker_gpus", self.worker_gpus, 0)
        require_number("engine.patience", self.patience, 1)
        require_extra("engine=ray", "ray", instead="engine=local")

    @property
    def rows_at_once(self) -> int | None:
        """The number of rows that keep all workers busy, with little waiting while results are written."""
        self._connect()
        return self._most * _BLOCKS_AT_ONCE * self.block_rows

    def map(self, work: Work, blocks: Iterable[Any]) -> Iterator[Any]:
        """The results of the blocks in order, each once; ConfigError if no worker is available.

        Workers are kept for more blocks of equal work, and end when other work comes.
        """
        self._connect()
        return pool_for(work, self._limits).map(blocks, self._most)

    def hold(self, works: Sequence[Work]) -> Held:
        """One actor per work, spread over the nodes; they end with the returned object."""
        self._connect()
        return Crew(works, self._limits)

    def _connect(self) -> None:
        if connect(self.address, self.num_cpus, self.object_store_mb << 20):
            forget()

    @property
    def _most(self) -> int:
        there_is = room(self.worker_cpus, self.worker_gpus)
        return min(self.workers or there_is, there_is)

    @property
    def _limits(self) -> Limits:
        return Limits(self.worker_cpus, self.worker_gpus, self.retries, self.patience)
