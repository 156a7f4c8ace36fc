"""Ray for a sweep: imports, connects and silences it; checks the settings of its launcher."""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ragauge.contract.errors import ConfigError
from ragauge.contract.extras import require_extra
from ragauge.contract.redact import redact

_STORE_BYTES = 100_000_000  # Ray's object store where it is started here: jobs send each other nothing
_TRIES = 4  # where Ray is started here: it gives itself half a minute, which a busy machine may exceed
# "0" has Ray keep to 127.0.0.1, as it does where it is not meant for clusters; read where ray is imported.
_ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


def check(settings: Mapping[str, Any]) -> None:
    """ConfigError for an unusable launcher setting."""

    def refuse(key: str, allowed: str) -> None:
        raise ConfigError(f"hydra.launcher.{key}={settings[key]!r}: give {allowed}")

    for key in ("num_cpus", "num_gpus"):
        if not (math.isfinite(settings[key]) and settings[key] >= 0):
            refuse(key, "a number of at least 0")
    if settings["num_cpus"] == 0 and settings["num_gpus"] == 0:
        refuse("num_cpus", "more than 0, or num_gpus; else all jobs of the sweep would run at once")
    if settings["max_retries"] < 0:
        refuse("max_retries", "0 or more")
    if settings["n_jobs"] is not None and settings["n_jobs"] < 1:
        refuse("n_jobs", "1 or more, or null")
    if settings["n_jobs"] is not None and settings["address"] is not None:
        refuse("n_jobs", "null: in a cluster the machines' cores, num_cpus and num_gpus say how many run")


@contextmanager
def connected(settings: Mapping[str, Any]) -> Iterator[Any]:
    """Ray, connected to the cluster of `address`, or started here for the duration of the block.

    Raises ConfigError where Ray is not installed, and where the address does not answer.
    """
    with _own_sigterm():
        ray = _ray(settings["address"])
        # Ray tells the death of a machine in some twenty lines, and here it is told in one per job.
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if settings["runtime_env"]:
            quiet["runtime_env"] = dict(settings["runtime_env"])
        _begin(ray, settings, quiet)
    # Whatever else a node that dies has Ray print among the sweep's own lines.
    internals: Any = ray._private.worker
    if hasattr(internals, "_worker_logs_enabled"):
        internals._worker_logs_enabled = False
    try:
        yield ray
    finally:
        with _own_sigterm():
            ray.shutdown()


def _begin(ray: Any, settings: Mapping[str, Any], quiet: Mapping[str, Any]) -> None:
    address, each = settings["address"], settings["num_cpus"]
    jobs = settings["n_jobs"] or (os.cpu_count() or 1) // (each or 1)
    here = {
        "num_cpus": math.ceil(max(1, jobs) * each),
        "include_dashboard": False,
        "object_store_memory": _STORE_BYTES,
    }
    for left in reversed(range(_TRIES if address is None else 1)):
        try:
            ray.init(address=address or "local", **({} if address else here), **quiet)
            return
        # Ray raises whatever it finds: of its own, of the network, of the system, and plain Exceptions.
        except Exception as error:
            ray.shutdown()
            if left and "timed out during startup" in str(error):
                continue
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            where = f"at {address}" if address else "on this machine"
            raise ConfigError(f"Ray {where} cannot be used: {redact(why)}") from None


def _ray(address: str | None) -> Any:
    # Ray reports what it is used for unless it is told not to; what people measure is theirs.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        os.environ.setdefault(_ALONE, "0")
    require_extra("hydra/launcher=ray", "ray")
    import ray

    return ray


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keeps the handler of SIGTERM, which Ray replaces by one that exits at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
