"""What an engine of Ray on this machine alone makes of good work and bad; JSON of it.

Run in a namespace of its own: python ray_here.py <empty folder>.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.errors import DataError
from ragauge.plugins.ray.engine import RayEngine


@dataclass(frozen=True)
class Doubles:
    """Numbers doubled; 13 is bad data, 666 ends the worker, 999 ends the first worker that gets it."""

    marks: Path

    def __call__(self, block: list[int]) -> np.ndarray:
        if 13 in block:
            raise DataError("row 13: unlucky")
        if 666 in block or (999 in block and first_time(self.marks / "999")):
            os._exit(1)
        (self.marks / f"pid-{os.getpid()}").touch()
        return 2 * np.array(block)


@dataclass(frozen=True)
class Locked:
    """What cannot be pickled."""

    lock: Any

    def __call__(self, block: list[int]) -> list[int]:
        return block


def first_time(file: Path) -> bool:
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def error_of(engine: RayEngine, work: Any, blocks: list[list[int]]) -> str:
    try:
        list(engine.map(work, blocks))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "none"


def listening() -> list[str]:
    """The addresses on which anything in this namespace listens."""
    said = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[3].rpartition(":")[0] for line in said.splitlines()})


def main(folder: Path) -> None:
    engine = RayEngine(num_cpus=2, object_store_mb=80, block_rows=3, retries=1)
    work = Doubles(folder)
    told: dict[str, Any] = {"rows_at_once": engine.rows_at_once}
    read: list[int] = []

    def blocks() -> Iterator[list[int]]:
        for i in range(100):
            read.append(i)
            yield [i + 1000, i]

    found = engine.map(work, (block for block in blocks() if 13 not in block))
    first = [next(found).tolist() for _ in range(3)]
    told["read_ahead"] = len(read)
    told["in_order"] = [*first, *(block.tolist() for block in found)] == [
        [2 * (i + 1000), 2 * i] for i in range(100) if i != 13
    ]
    told["listening"] = listening()
    told["bad_row"] = error_of(engine, work, [[1], [13], [2]])
    told["after_it"] = [block.tolist() for block in engine.map(work, [[1], [2]])]
    told["one_lost"] = [block.tolist() for block in engine.map(work, [[1], [999], [2]])]
    told["all_lost"] = error_of(engine, work, [[1], [666]])
    told["writeable"] = bool(next(engine.map(work, [[1]])).flags.writeable)
    held = engine.hold([work, Doubles(folder / "..")])
    told["held"] = [found.tolist() for found in held.ask([4])]
    told["unpicklable"] = error_of(engine, Locked(threading.Lock()), [[1]])
    greedy = RayEngine(worker_gpus=1, patience=1)
    told["no_room"] = error_of(greedy, work, [[1]])
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
