"""Settings of the server that fit this machine: threads, context, slots."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from ragauge.contract.errors import ConfigError
from ragauge.plugins.llama_cpp.gguf import Header

SLOTS = 4  # requests that are computed together
CONTEXT = 8192  # tokens of a prompt and its reply; no shipped prompt needs more at the usual budgets
_LEAST_CONTEXT = 2048
_BESIDE = 400 << 20  # bytes of buffers beside weights and cache
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Fitted:
    """Settings of a server, and the memory that they leave.

    threads: those that compute.   context: tokens of one slot.   slots: requests at a time.   spare: bytes.
    """

    threads: int
    context: int
    slots: int
    spare: int | None


def fitted(key: str, header: Header, wish: Mapping[str, int | None], free: int | None, cores: int) -> Fitted:
    """The wished settings, and for those that are None the largest that fit.

    One of the cores stays free: llama.cpp's threads wait for each other, and for one that another program delays.
    free: bytes of memory; None where unknown, and then everything fits. A context is shortened before there are
    fewer slots. ConfigError where weights and the smallest choice exceed `free`.
    """
    most = min(header.trained, CONTEXT)
    contexts = [wish["context"] or most]
    while not wish["context"] and contexts[-1] // 2 >= _LEAST_CONTEXT:
        contexts.append(contexts[-1] // 2)
    n_slots = [wish["slots"]] if wish["slots"] else list(range(SLOTS, 0, -1))
    for slots, context in product(n_slots, contexts):
        needed = header.size + slots * context * header.cache + _BESIDE
        if free is None or needed <= free:
            return Fitted(wish["threads"] or max(1, cores - 1), context, slots, None if free is None else free - needed)
    slots, context = n_slots[-1], contexts[-1]
    needed = header.size + slots * context * header.cache + _BESIDE
    raise ConfigError(
        f"{key}: the model needs {_gib(needed)} GiB of memory ({_gib(header.size)} of weights, slots={slots}, "
        f"context={context}), and {_gib(free or 0)} are free; take a smaller file or context"
    )


def cores() -> int:
    """Cores that this process may use: without the second threads of a core, within the limit of a container."""
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is None:
        return os.cpu_count() or 1
    usable = affinity(0)
    try:
        place = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
        n = len({Path(place.format(cpu)).read_text(encoding="ascii") for cpu in usable})
    except OSError:
        n = len(usable)
    quota, _, period = (_text(_CGROUP / "cpu.max") or "max").partition(" ")
    return max(1, n if quota == "max" else min(n, int(quota) // int(period)))


def free_memory() -> int | None:
    """Bytes of memory that are free, within the limit of a container; None where the system does not say."""
    rows = dict(line.split(":", 1) for line in (_text(Path("/proc/meminfo")) or "").splitlines())
    if "MemAvailable" not in rows:
        return None
    free = int(rows["MemAvailable"].split()[0]) << 10
    limit, used = _text(_CGROUP / "memory.max"), _text(_CGROUP / "memory.current")
    return free if limit in (None, "max") or used is None else min(free, int(str(limit)) - int(used))


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _gib(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f}"
