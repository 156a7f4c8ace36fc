"""Connects this process to a Ray cluster, or to a Ray started on this machine alone."""

from __future__ import annotations

import logging
import math
import os
import sys
from typing import Any

from ragauge.contract.errors import EngineError

_NO_REPORTS = "RAY_USAGE_STATS_ENABLED"  # Ray reports its use to its makers unless told not to
# "0" has Ray keep to 127.0.0.1, as it does where it is not meant for clusters; read where ray is imported.
_ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"

_STARTS = 3  # Ray gives itself thirty seconds to start, which a busy machine exceeds


def connect(address: str | None, num_cpus: int | None, object_store_bytes: int) -> bool:
    """Connects this process once; returns whether it was unconnected before.

    One that is, such as a job that Ray itself runs, stays where it is. address None starts Ray on this
    machine, on 127.0.0.1; it ends with this process. EngineError in one line where Ray cannot be started or
    reached.
    """
    os.environ.setdefault(_NO_REPORTS, "0")
    if address is None and "ray" not in sys.modules:
        os.environ.setdefault(_ALONE, "0")
    import ray

    if ray.is_initialized():
        return False
    here: dict[str, Any] = {
        "num_cpus": num_cpus,
        "object_store_memory": object_store_bytes,
        "include_dashboard": False,
    }
    tries = _STARTS if address is None else 1
    for left in reversed(range(tries)):
        try:
            ray.init(
                address or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
                **(here if address is None else {}),
            )
            break
        except Exception as error:  # of Ray, of its network, of the system: whatever keeps it from starting
            ray.shutdown()
            if left:
                continue
            what = "Ray cannot be started here" if address is None else "no Ray cluster answers"
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise EngineError(f"engine.address={address}: {what}: {reason}") from error
    # Where a node dies Ray would print pages of its log among the command's own output.
    internals: Any = ray._private.worker
    if hasattr(internals, "_worker_logs_enabled"):
        internals._worker_logs_enabled = False
    return True


def nodes() -> list[dict[str, Any]]:
    """The live nodes, without those that lend no core if others do."""
    import ray

    living = [node for node in ray.nodes() if node["Alive"]]
    return [node for node in living if node["Resources"].get("CPU", 0) > 0] or living


def room(cpus: float, gpus: float) -> int:
    """How many workers fit the live nodes, at least one."""

    def fit(node: dict[str, Any]) -> int:
        has = node["Resources"]
        wanted = [(has.get("CPU", 0.0), cpus), (has.get("GPU", 0.0), gpus)]
        return math.floor(min(there / each + 1e-9 for there, each in wanted if each))

    return max(1, sum(map(fit, nodes())))
